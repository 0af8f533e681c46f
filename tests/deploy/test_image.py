"""Dockerfile, as far as it can be held to its word without building it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
STEPS = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text()).splitlines()
LOCKED = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / ".ci" / "demo.lock").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def steps(word: str) -> list[str]:
    return [step.removeprefix(f"{word} ") for step in STEPS if step.startswith(f"{word} ")]


def test_what_is_copied_is_there_and_not_ignored():
    """Every source that is copied exists, and .dockerignore lets it in, and nothing else but what is under it."""
    copied = {source for step in steps("COPY") if not step.startswith("--from") for source in step.split()[:-1]}
    assert all((ROOT / source).exists() for source in copied)
    ignore = (ROOT / ".dockerignore").read_text().split()
    assert ignore[0] == "*"
    assert {line.removeprefix("!") for line in ignore if line.startswith("!")} == copied


def test_all_is_locked_and_no_build_tool_is_left():
    """What is installed comes from the lock, by hash; what only builds is locked too, and taken away again."""
    runs = " ".join(steps("RUN"))
    assert "--require-hashes --requirement .ci/demo.lock" in runs
    assert "--no-deps --no-build-isolation ." in runs
    removed = set(runs.partition("uninstall --yes ")[2].split())
    build = {re.split(r"[<>=]", each)[0] for each in PROJECT["dependency-groups"]["build"]}
    assert build <= removed <= LOCKED
    assert steps("FROM")[-1] == steps("FROM")[0].removesuffix(" AS build")
    assert "RUN" not in [step.split()[0] for step in STEPS[STEPS.index(f"FROM {steps('FROM')[-1]}") :] if step]


def test_it_runs_the_operator_as_nobody():
    """The entry point is the operator, and its user is a number, by which the kubelet tells that it is not root."""
    assert steps("ENTRYPOINT") == ['["vastfleet", "operator"]']
    assert steps("USER") == ["65532:65532"]
    assert PROJECT["project"]["scripts"]["vastfleet"] == "controller.cli.main:main"
