"""vast.ai's names for its GPUs, and the many ways people write them. Read by the manifest.

The market matches names exactly, spaces and all, so a shape must carry vast.ai's own spelling.
"""

import difflib
import re

_TABLE = """
A10|A10g|A16|A30|A40|A100 PCIE|A100 SXM|A100 SXM4|A100X|A800 PCIE|B200|GH200 SXM|H100 NVL|H100 PCIE|H100 SXM|H200
H200 NVL|L4|L40|L40S|Tesla K20c|Tesla K80|Tesla M40|Tesla P4|Tesla P6|Tesla P40|Tesla P100|Tesla T4|Tesla V100
GeForce 970|GTX 750 Ti|GTX 1050|GTX 1050 Ti|GTX 1060|GTX 1070|GTX 1070 Ti|GTX 1080|GTX 1080 Ti|GTX 1650|GTX 1650 S
GTX 1650 Ti|GTX 1660|GTX 1660 S|GTX 1660 Ti|GTX TITAN X|RTX 2060|RTX 2060S|RTX 2070|RTX 2070S|RTX 2080|RTX 2080S
RTX 2080 Ti|RTX 3050|RTX 3060|RTX 3060 laptop|RTX 3060 Ti|RTX 3070|RTX 3070 laptop|RTX 3070 Ti|RTX 3080|RTX 3080 Ti
RTX 3090|RTX 3090 Ti|RTX 4060|RTX 4060 laptop|RTX 4060 Ti|RTX 4070|RTX 4070 laptop|RTX 4070S|RTX 4070S Ti
RTX 4070 Ti|RTX 4080|RTX 4080 laptop|RTX 4080S|RTX 4090|RTX 4090D|RTX 4090 Ti|RTX 5060|RTX 5060 Ti|RTX 5070
RTX 5070 Ti|RTX 5080|RTX 5090|RTX 5090 Ti|Titan RTX|Titan V|TITAN V CEO|Titan X|Titan Xp|Quadro K620|Quadro K2200
Quadro P2000|Quadro P4000|Quadro P5000|Quadro P6000|Quadro GP100|Quadro GV100|Q RTX 4000|Q RTX 5000|Q RTX 6000
Q RTX 8000|RTX A2000|RTX A4000|RTX A4500|RTX A5000|RTX A6000|RTX 2000Ada|RTX 4000Ada|RTX 4500Ada|RTX 5000Ada
RTX 5880Ada|RTX 6000Ada|RTX PRO 4000|RTX PRO 4000 Mobile|RTX PRO 4500|RTX PRO 5000|RTX PRO 6000|RTX PRO 6000 S
RTX PRO 6000 WS|RTX PRO 6000 Max-Q|CMP 50HX|CMP 170HX|P104-100|P106-100|InstinctMI50|InstinctMI100|InstinctMI210
InstinctMI250X|PRO W6800|PRO W7800|PRO W7900|Pro V620|Radeon VII|Radeon Pro VII|RX 6800|RX 6800 XT|RX 6900 XT
RX 6950 XT|RX 7600|RX 7700 XT|RX 7800 XT|RX 7900 GRE|RX 7900 XT|RX 7900 XTX
"""

NAMES: tuple[str, ...] = tuple(name for line in _TABLE.split("\n") for name in line.split("|") if name)


def _key(name: str) -> str:
    """The letters and digits that tell models apart: no maker, no spacing, no case, vast.ai's abbreviations."""
    words = re.sub(r"nvidia|geforce|\bamd\b|generation", " ", name.lower().replace("_", " "))
    squeezed = re.sub(r"[^a-z0-9]", "", words)
    return re.sub(r"(ti)?super$", r"s\1", squeezed).replace("quadrortx", "qrtx")


_BY_KEY = {_key(name): name for name in NAMES}


def known_keys() -> tuple[str, ...]:
    """What the names come down to, in order, without Tesla, which may be left out. For the cluster's schema."""
    return tuple(sorted(key.removeprefix("tesla") for key in _BY_KEY))


def normalise(name: str) -> str:
    """vast.ai's spelling of a GPU's name: `RTX_4090`, `rtx4090` and `NVIDIA GeForce RTX 4090` all give `RTX 4090`.

    Raises ValueError, with the closest names, on one that vast.ai does not have.
    """
    key = _key(name)
    for candidate in (key, f"tesla{key}"):
        if candidate in _BY_KEY:
            return _BY_KEY[candidate]
    close = [_BY_KEY[found] for found in difflib.get_close_matches(key, _BY_KEY, n=3, cutoff=0.6)]
    hint = f"did you mean {' or '.join(close)}?" if close else "write it as vast.ai does, such as RTX 4090"
    raise ValueError(f"no GPU on vast.ai has this name; {hint}")
