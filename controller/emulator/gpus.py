"""The GPU models of the emulated market: how common, how dear, how large, how fast.

Weights and prices follow the quantiles of verified, available GPUs on the real market at the end of 2025; proof rates
are plausible means, not measurements. Called by generate, offers and prover.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Price(NamedTuple):
    """USD per GPU and hour: 10th percentile, median, 90th percentile."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class Gpu:
    """One model: its share of the market, price, memory (MB), power limit (W), speed and proofs an hour."""

    name: str
    weight: int
    price: Price
    ram_mb: int
    watts: int
    tflops: float
    dlperf: float
    compute_cap: int
    proofs_per_hour: float


GPUS = (
    Gpu("RTX 4090", 1864, Price(0.26, 0.34, 0.435), 24564, 450, 82.6, 98.6, 890, 61.0),
    Gpu("RTX 5090", 831, Price(0.34, 0.44, 0.60), 32607, 575, 109.4, 203.2, 1200, 95.0),
    Gpu("RTX 3090", 677, Price(0.13, 0.16, 0.24), 24576, 350, 35.8, 45.2, 860, 33.0),
    Gpu("RTX 3060", 360, Price(0.05, 0.06, 0.10), 12288, 170, 12.4, 12.5, 860, 11.0),
    Gpu("H200", 239, Price(2.01, 2.23, 2.99), 143771, 700, 53.5, 491.1, 900, 112.0),
    Gpu("RTX PRO 6000 S", 238, Price(1.33, 2.00, 2.10), 97887, 600, 93.6, 279.4, 1200, 98.0),
    Gpu("L40S", 113, Price(0.44, 0.60, 0.66), 46068, 350, 73.3, 95.2, 890, 58.0),
    Gpu("RTX 3080", 104, Price(0.06, 0.08, 0.12), 10240, 320, 29.7, 27.4, 860, 26.0),
    Gpu("A100 SXM4", 103, Price(0.61, 1.08, 1.14), 81920, 400, 15.6, 131.8, 800, 52.0),
    Gpu("RTX A4000", 103, Price(0.08, 0.09, 0.15), 16376, 140, 20.6, 21.6, 860, 17.0),
    Gpu("RTX A6000", 93, Price(0.365, 0.38, 0.49), 49140, 300, 36.1, 55.2, 860, 35.0),
    Gpu("RTX 5060 Ti", 91, Price(0.06, 0.10, 0.14), 16311, 180, 23.7, 38.7, 1200, 24.0),
    Gpu("RTX 4060 Ti", 79, Price(0.06, 0.12, 0.195), 16380, 165, 21.7, 22.9, 890, 21.0),
    Gpu("RTX A5000", 78, Price(0.19, 0.23, 0.25), 24564, 230, 27.5, 35.3, 860, 27.0),
    Gpu("RTX PRO 6000 WS", 73, Price(0.78, 0.88, 1.06), 97887, 600, 119.0, 283.6, 1200, 104.0),
    Gpu("H100 SXM", 69, Price(1.53, 2.00, 2.13), 81559, 700, 53.5, 353.9, 900, 108.0),
    Gpu("RTX 3070", 67, Price(0.04, 0.07, 0.13), 8192, 220, 20.3, 16.7, 860, 18.0),
    Gpu("RTX 4070S Ti", 53, Price(0.14, 0.19, 0.20), 16376, 285, 42.6, 51.8, 890, 38.0),
    Gpu("RTX 5080", 51, Price(0.13, 0.16, 0.22), 16303, 360, 54.2, 84.1, 1200, 55.0),
    Gpu("RTX 5070 Ti", 47, Price(0.10, 0.11, 0.13), 16303, 300, 44.7, 76.1, 1200, 47.0),
    Gpu("Tesla V100", 44, Price(0.12, 0.20, 0.22), 32768, 300, 12.5, 25.7, 700, 20.0),
    Gpu("A40", 34, Price(0.29, 0.41, 0.60), 46068, 300, 29.9, 44.2, 860, 31.0),
    Gpu("RTX 4070 Ti", 31, Price(0.07, 0.08, 0.12), 12282, 285, 38.2, 35.6, 890, 34.0),
    Gpu("RTX 4070", 27, Price(0.065, 0.08, 0.17), 12282, 200, 29.5, 34.0, 890, 28.0),
    Gpu("B200", 27, Price(2.86, 3.33, 3.88), 183359, 1000, 59.6, 589.0, 1000, 135.0),
    Gpu("RTX 6000Ada", 23, Price(0.50, 0.53, 0.63), 49140, 300, 81.4, 117.0, 890, 62.0),
    Gpu("H100 NVL", 23, Price(1.73, 2.13, 2.26), 95830, 400, 50.9, 377.4, 900, 102.0),
    Gpu("RTX 4080S", 22, Price(0.13, 0.18, 0.19), 16376, 320, 51.0, 56.1, 890, 46.0),
    Gpu("RTX PRO 5000", 20, Price(0.60, 0.70, 0.85), 48935, 300, 65.0, 180.0, 1200, 72.0),
    Gpu("RTX 5000Ada", 12, Price(0.40, 0.47, 0.55), 32760, 250, 65.3, 90.0, 890, 50.0),
    Gpu("Q RTX 8000", 12, Price(0.20, 0.25, 0.35), 46080, 260, 16.3, 27.0, 750, 19.0),
)

BY_NAME = {gpu.name: gpu for gpu in GPUS}


def gpu_of(name: str) -> Gpu:
    """Return the model of this name; one not in the table is taken for a middling card of that name."""
    return BY_NAME.get(name) or Gpu(name, 1, Price(0.1, 0.2, 0.4), 16384, 300, 30.0, 30.0, 800, 25.0)
