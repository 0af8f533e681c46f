"""The loader and the API server refuse the same manifests, for the same field: see tests/model/bad.py."""

import re
from collections.abc import Callable

import pytest

from controller.model.twins import ONLY_THE_LOADER
from tests.cluster.plane import Cluster, KubectlError
from tests.model.bad import (
    BUDGET,
    TABLE,
    Change,
    Row,
    changed,
    in_benchmark,
    in_instance,
    in_pin,
    in_shape,
    in_spec,
    in_window,
)

KUBECTL_READS = {
    **{
        (BUDGET, f"budgetPerHour: {written}"): f"kubectl reads {meant}"
        for written, meant in (
            ("1_0", "10"),
            ("010", "8"),
            ("0x1F", "31"),
            ("0o7", "7"),
            ("+5", "5"),
            (".5", "0.5"),
            ("5.", "5"),
        )
    },
    in_spec("budgetPerHour: 50"): "of two values kubectl keeps the last",
    ("instances: 2", "instances: 2.0"): "a whole number is one however it is written, in JSON",
    in_spec("suspend: yes"): "kubectl reads true",
    in_spec("suspend: True"): "kubectl reads true",
    in_pin("until: 2027-01-31"): "kubectl reads the same text",
    in_spec("require: &a {}"): "kubectl reads anchors",
    in_spec("suspend: !!bool 'true'"): "kubectl reads this tag",
}
"""What the API server never sees as it was written: it is right as kubectl reads it."""

STORED = {
    in_benchmark("prepare: {doneWhen: '('}"): "spec.benchmark.prepare.doneWhen",
    **{
        in_window(f'cron: "{cron}"'): "spec.disruption.windows[].cron"
        for cron in ("0 5-3 * * *", "0 3 31 2 *", "0 3 30,31 FEB *", "0 3 31 4,6,9,11 *", "0 3 */31 * MON#5")
    },
}
"""What is stored though it is wrong, by the field; the operator tells of it."""

KUBECTL_REFUSES = {
    in_spec("? [a]\n  : b"): "invalid map key",
    in_spec("<<: 3"): "map merge requires map",
    (BUDGET, "budgetPerHour: .inf"): "unsupported value: +Inf",
    (BUDGET, "budgetPerHour: .NaN"): "unsupported value: NaN",
    ("name: provers", "name: no"): "cannot unmarshal bool into Go struct field ObjectMeta.metadata.name",
    in_window("cron: * 3 * * *"): "did not find expected alphabetic or numeric character",
    ("name: provers", 'name: "\\ud800"'): "found invalid Unicode character escape code",
    in_spec("require: *a"): "unknown anchor 'a' referenced",
}
"""What kubectl cannot read, with what it says; it knows no field."""

NEAREST = {
    in_spec("on: 3"): "spec.true",
    in_shape("gpuCount: 1\n  - {gpu: rtx4090, minRate: 3}"): "spec.shapes",
    in_spec("machines: {prefer: [{id: 7, reason: a}, {id: 7, reason: b}]}"): "spec.machines.prefer[1]",
    in_spec(
        'machines: {prefer: [{id: 7, reason: a}], avoid: [{id: 7, reason: b, until: "2020-01-01"}]}'
    ): "spec.machines.prefer",
    in_instance("env: {9A: a}"): "spec.instance.env",
    in_instance("env: {A-B: a}"): "spec.instance.env",
    in_instance(f"env: {{A: {'é' * 129}}}"): "spec.instance.env",
    in_instance('env: {A: "\\0"}'): "spec.instance.env",
    in_instance("envFrom: [{}]"): "spec.instance.envFrom[0].secretRef",
    in_instance("envFrom: [{variable: A, file: a.env}]"): "spec.instance.envFrom[0].file",
    in_instance("envFrom: [{variable: A, secretRef: {name: a}}]"): "spec.instance.envFrom[0].variable",
}
"""What the API server refuses at the nearest field that it can name."""


@pytest.fixture(scope="session")
def answers(kinds: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Change], str]:
    """What kubectl said to each manifest of the table, all given to it at once; empty if it was taken."""
    place = tmp_path_factory.mktemp("bad")
    for number, row in enumerate(TABLE):
        (place / f"{number:03}.yaml").write_bytes(changed(row[0]).encode(errors="surrogatepass"))
    with pytest.raises(KubectlError) as refused:
        kinds.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(place))
    pieces = re.split(rf"{re.escape(str(place))}/([0-9]{{3}})\.yaml\"?: ", str(refused.value))
    said = dict(zip(map(int, pieces[1::2]), pieces[2::2], strict=True))
    return {row[0]: said.get(number, "") for number, row in enumerate(TABLE)}.__getitem__


def test_what_is_stored_though_it_is_wrong_is_known():
    """Whatever the API server stores that the loader refuses is listed beside the rules, with why it has no twin."""
    assert set(STORED.values()) <= set(ONLY_THE_LOADER)


def fields_in(said: str) -> set[str]:
    """The fields that the API server's answer names, env's and other maps' keys as the loader spells them."""
    named = re.findall(r'(?:^|[\[\s])((?:spec|metadata)[\w.[\]]*): |unknown field "([^"]+)"', said)
    return {first or second for first, second in named}


@pytest.mark.parametrize("row", TABLE, ids=[row[3] for row in TABLE])
def test_what_the_loader_refuses_the_server_refuses(answers: Callable[[Change], str], row: Row):
    """A manifest is refused by kubectl for the field that the loader names, but for what is listed, with the reason."""
    change, path = row[0], row[3]
    said = answers(change)
    if change in KUBECTL_READS or change in STORED:
        assert said == ""
    elif change in KUBECTL_REFUSES:
        assert KUBECTL_REFUSES[change] in said
    else:
        assert NEAREST.get(change, path) in fields_in(said), said
