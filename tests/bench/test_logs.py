"""What real programs printed, kept in logs/, each read rightly or refused with the reason."""

import re
from pathlib import Path

import pytest

from controller.bench.lines import Lines
from controller.bench.log import Log
from controller.bench.measuring import checked
from controller.bench.rates import Reader, Reading
from controller.bench.readers import reader_of
from controller.bench.session import Ended
from controller.model.faults import Refused
from controller.model.reasons import Reason

LOGS = Path(__file__).parent / "logs"
GPU_1 = r"proc'd: \d+ \((?P<rate>[\d.]+) ?(?P<unit>Gflop/s)\)"
GPU_2 = r"proc'd: [^)]*\) - \d+ \((?P<rate>[\d.]+) ?(?P<unit>Gflop/s)\)"
WHOLE = rf"^100\.0%\s+{GPU_1}"
SPEED = r"Speed\.#\d+\.*:\s+(?P<rate>\S+)\s+(?P<unit>\S+)"
OUTPUT = r"^Output token throughput \(tok/s\):\s+(?P<rate>\S+)"
PROVES = r"(?P<rate>\d+)(?P<unit>proves?/\w*)"
SIZE_RATE = r" \S+ +\((?P<rate>[\d.]+) (?P<unit>\S+)\)"


def sections(name: str) -> dict[str, str]:
    """The excerpts of a file by their headings; colour codes as they were sent, not as they were shown."""
    text = (LOGS / name).read_text().replace("^[[", "\x1b[")
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True)) or {name: text}


def excerpt(name: str, heading: str) -> str:
    (found,) = (text for title, text in sections(name).items() if heading in title)
    return found


def judged(text: str, reader: Reader) -> Reading:
    """What a run that printed this, and exited with 0, comes to."""
    log = Log(progress=lambda _line: None, redact=lambda line: line)

    def hear(line: str) -> None:
        log.hear(line)
        reader.feed(line)

    lines = Lines(hear)
    lines.feed(text)
    lines.close()
    return checked(Ended(0, log, said=False), reader.result())


READ = [
    ("gpu_burn.txt", "gpu-burn#96", GPU_1, "Gflop/s", 52045),
    ("gpu_burn.txt", "gpu-burn#96", GPU_2, "Tflop/s", 51.946),
    ("gpu_burn.txt", "gpu-burn#110", GPU_1, "Gflop/s", 20000),
    ("gpu_burn.txt", "gpu-burn#48", GPU_2, "Gflop/s", 6485),
    ("gpu_burn.txt", "gpu-burn#1 ", GPU_1, "Gflop/s", 74),
    ("hashcat.txt", "RTX-2060", SPEED, "H/s", 957.4e6),
    ("hashcat.txt", "HD530", SPEED, "kH/s", 16.296),
    ("hashcat.txt", "quiet", SPEED, "GH/s", 2.0461),
    ("llm_bench.txt", "llama-bench", r"tg128 \|\s+(?P<rate>\S+) ±", "t/s", 278.95),
    ("llm_bench.txt", "llama-bench", r"pp512 \|\s+(?P<rate>\S+) ±", "t/s", 16634.04),
    ("llm_bench.txt", "vllm bench serve", OUTPUT, "tok/s", 200.41),  # not the peak below it
    ("llm_bench.txt", "asked for 100", OUTPUT, "tok/s", 170.33),  # no pattern sees that 90 prompts were left out
    ("llm_bench.txt", "older wording", OUTPUT, "tok/s", 9799.19),
    ("miners_provers.txt", "bench#5", r"(?P<rate>\d+)(?P<unit>prove/s)", "proves/s", 19),  # the whole line before it
    ("miners_provers.txt", "bench#4", PROVES, "proves/s", 17),
    ("miners_provers.txt", "#2/#3", PROVES, "proves/s", 21),
    ("miners_provers.txt", "#2/#3", r"(?P<rate>\d+)(?P<unit>ms/prove)", "proves/s", 1000 / 46),
    ("miners_provers.txt", "zkrush", r"Total +\| (?P<rate>\d+)", "proofs/s", 17222),
    ("miners_provers.txt", "rigel", r"Total: (?P<rate>\S+) (?P<unit>\w+/s)", "MH/s", 3669),
    ("miners_provers.txt", "rigel", r"GTX 1070 +\|(?P<rate>\S+) (?P<unit>\w+/s)", "GH/s", 0.6081),
    ("miners_provers.txt", "gigahorse", r"compute quality: (?P<rate>\S+) (?P<unit>sec)", "looks/s", 1 / 0.0462238),
    ("miners_provers.txt", "raiko", r"└╴(?P<rate>\S+) cycles", "cycles/s", 18_777_833),
    ("miners_provers.txt", "raiko", r"time\.busy=(?P<rate>\S+)", "setups/h", 3600 / 2.71),
    ("miners_provers.txt", "output-zero", r"Proving took (?P<rate>\S+)", "proofs/h", 3600 / 918.84798707),
    ("miners_provers.txt", "output-zero", r"verified in (?P<rate>\S+)", "receipts/s", 1 / 0.182014537),
    ("bellperson_lotus.txt", "bellperson#163", r"prover time: (?P<rate>\S+)", "proofs/h", 3600 / 44.201947641),
    ("bellperson_lotus.txt", "bellperson#163", r"INFO\s+storageminer.* took (?P<rate>\S+)", "posts/min", 1.29732),
    ("bellperson_lotus.txt", "jackoelv", r"commit phase 2: (?P<rate>\S+)", "seals/h", 3600 / 965.706406147),
    ("bellperson_lotus.txt", "jackoelv", "commit phase 2:" + SIZE_RATE, "MiB/h", 33.93 * 3600),
    ("bellperson_lotus.txt", "jackoelv", "commit phase 1:" + SIZE_RATE, "MiB/s", 96.13 * 1024),
    ("bellperson_lotus.txt", "jackoelv", r"addPiece: (?P<rate>\S+)", "pieces/h", 3600 / 100.626541161),
    ("bellperson_lotus.txt", "jackoelv", r"candidates: (?P<rate>\S+)", "looks/s", 1 / 242.142e-6),
    ("bellperson_lotus.txt", "lotus#839", "unseal:" + SIZE_RATE, "GiB/s", 199 * 1024),
    ("bellperson_lotus.txt", "bellperson#60", r"proving time: (?P<rate>\S+)", "proofs/h", 3600 / 4.691798915),
    ("bellperson_lotus.txt", "bellperson#60", r"\((?P<rate>\S+?)(?P<unit>s/proof)\)", "proofs/s", 1 / 0.00149316052),
    ("cuzk_commit_measurements.txt", "", r"Throughput: (?P<rate>\S+?)(?P<unit>s/proof)", "proofs/h", 3600 / 41.3),
    ("cuzk_commit_measurements.txt", "", r"^(?P<rate>\S+) (?P<unit>proofs/min)", "proofs/h", 0.602 * 60),
    ("cuzk_commit_measurements.txt", "", r"256 GiB: .* (?P<rate>\S+?)(?P<unit>s/proof)", "proofs/h", 3600 / 53),
    ("cuzk_measured_tables.md", "", r"pipeline\*\* .*~(?P<rate>\S+) (?P<unit>proofs/min)", "proofs/h", 0.84 * 60),
    ("cuzk_measured_tables.md", "", r"768 GiB\*\* .*\| (?P<rate>\S+?)(?P<unit>s/proof)", "proofs/h", 3600 / 37.7),
    ("vast_container_and_ssh.txt", "RUNBOOK", r"(?P<rate>\S+) (?P<unit>games/s)", "games/h", 1.5 * 3600),
]


@pytest.mark.parametrize(("name", "heading", "pattern", "wanted", "rate"), READ)
def test_read_rightly(name, heading, pattern, wanted, rate):
    """With a pattern that fits the program, its rate is read in the unit asked for, whatever unit it was printed in."""
    text = excerpt(name, heading) if heading else (LOGS / name).read_text()
    said = judged(text, reader_of("regex", pattern=pattern, wanted=wanted))
    assert said.rate == pytest.approx(rate, rel=1e-4)


REFUSED = [
    ("gpu_burn.txt", "gpu-burn#69", GPU_1, "Gflop/s", Reason.HOST_FAULT, "No clients are alive!"),
    ("gpu_burn.txt", "gpu-burn#12 ", GPU_1, "Gflop/s", Reason.HOST_FAULT, "GPU 1: FAULTY"),
    ("gpu_burn.txt", "gpu-burn#1 ", WHOLE, "Gflop/s", Reason.NO_RATE, "no line matches"),
    ("gpu_burn.txt", "gpu-burn#110", WHOLE, "Gflop/s", Reason.NO_RATE, "no line matches"),
    ("gpu_burn.txt", "gpu-burn#124", GPU_1, "Gflop/s", Reason.NO_RATE, "no line matches"),
    ("hashcat.txt", "RTX-2060", SPEED, "proofs/h", Reason.NO_RATE, "cannot read 'MH/s' as proofs/h"),
    ("llm_bench.txt", "TensorRT", r"\(req/s\):\s+(?P<rate>\S+)", "req/s", Reason.NO_RATE, "not a rate"),
    ("llm_bench.txt", "infpop", r"32 \|\s+(?P<rate>\S+)", "tok/s", Reason.OUT_OF_MEMORY, "CUDA out of memory"),
    ("miners_provers.txt", "bench#5", PROVES, "proves/s", Reason.NO_RATE, "cannot read 'prove/' as proves/s"),
    ("miners_provers.txt", "gigahorse", r"(?P<rate>\d+) (?P<unit>%)", "plots/h", Reason.NO_RATE, "cannot read '%'"),
    ("miners_provers.txt", "raiko", r"(?P<rate>\S+) (?P<unit>cycles)", "cycles/s", Reason.NO_RATE, "cannot read"),
    ("miners_provers.txt", "eth-act/ere", r"(?P<rate>\S+) proofs/h", "proofs/h", Reason.NO_RATE, "no line matches"),
    (
        "bellperson_lotus.txt",
        "lotus#6429",
        r"prover time: (?P<rate>\S+)",
        "proofs/h",
        Reason.NO_RATE,
        "Checked sectors",
    ),
    ("bellperson_lotus.txt", "bellperson#83", r"time: (?P<rate>\S+)", "proofs/h", Reason.HOST_FAULT, "No working GPUs"),
    ("vast_container_and_ssh.txt", "GPU gone", OUTPUT, "tok/s", Reason.HOST_FAULT, "No devices were found"),
]


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_reason(case):
    """Dead and missing GPUs behind an exit status of 0, memory that ran out, partial runs and odd units are no rate."""
    name, heading, pattern, wanted, reason, why = case
    with pytest.raises(Refused, match=re.escape(why)) as refused:
        judged(excerpt(name, heading), reader_of("regex", pattern=pattern, wanted=wanted))
    assert refused.value.reason is reason


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.iterdir()))
def test_no_excerpt_passes_for_a_batch_or_json(name):
    """Nothing but a whole batch, or an object with a rate, is read as one: not what merely talks of rates."""
    for text in sections(name).values():
        for form in ("cuzk", "json"):
            with pytest.raises(Refused) as refused:
                judged(text, reader_of(form, pattern="", wanted="proofs/h"))
            assert refused.value.reason in {Reason.NO_RATE, Reason.HOST_FAULT, Reason.OUT_OF_MEMORY}


def test_redrawn_lines_are_lines():
    """A log that redraws one line by carriage returns reads as if each state were a line."""
    text = excerpt("gpu_burn.txt", "gpu-burn#96").replace("\n", "\r")
    assert judged(text, reader_of("regex", pattern=GPU_1, wanted="Gflop/s")).rate == 52045


def test_every_log_is_tried():
    """No excerpt is kept without saying what is to be read from it, or why nothing is."""
    tried = {(case[0], str(case[1])) for cases in (READ, REFUSED) for case in cases}
    idle = {"vast_container_and_ssh.txt"}  # what else it has is no benchmark's output
    for name in (path.name for path in LOGS.iterdir()):
        headings = [heading for title, heading in tried if title == name]
        for title in sections(name) if name not in idle | {"cuzk_bench_format.txt"} else ():
            assert any(heading in title for heading in headings), (name, title)
