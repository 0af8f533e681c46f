"""The definitions of Fleet, Instance and Machine on a real API server, as kubectl shows them."""

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from controller.model import gpus, regions
from controller.model.kinds import GROUP, KINDS
from controller.model.manifest import load_text
from tests.cluster.plane import Cluster, KubectlError
from tests.model.bad import GPU, RATE, changed, in_instance, in_spec, in_window

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
READS_THE_CONTROLLER = {"own-benchmark.yaml": 'unknown field "spec.instance.envFrom[0].variable"'}

INSTANCE = {
    "fleet": "provers",
    "owner": "default",
    "label": "vf/default/provers/a1b2c3d4",
    "nonce": "a1b2c3d4",
    "shape": "RTX 4090 x1",
    "gpu": "RTX 4090",
    "gpuCount": 1,
    "machineId": 12345,
    "country": "NO",
    "diskGiB": 250,
    "workload": "2bab06ef4e88",
    "createdAt": "2026-11-30T12:00:00.123456Z",
    "pricePerHour": 0.4,
}
READY = {"type": "Ready", "status": "True", "reason": "TargetReached", "lastTransitionTime": "2026-11-30T12:00:00Z"}


def create(cluster: Cluster, kind: str, name: str, spec: object, status: object, *arguments: str) -> None:
    """Create an object, and give it the status that a controller would."""
    made = {"apiVersion": "vastfleet.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    cluster.kubectl("create", "-f", "-", *arguments, input=json.dumps(made))
    patch = json.dumps({"status": status})
    cluster.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "--patch", patch, *arguments)


def rows(table: str) -> list[list[str]]:
    """The cells of a table, which are two spaces or more apart."""
    return [[cell for cell in line.split("  ") if cell.strip()] for line in table.splitlines()]


def cells(table: str) -> dict[str, str]:
    """The heads and the cells of a table of one row."""
    head, row = rows(table)
    return {name.strip(): cell.strip() for name, cell in zip(head, row, strict=True)}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_definition_is_established_without_complaint(kinds: Cluster, kind):
    """The server takes each definition, as structural, and serves it under its short name and its category."""
    crd = json.loads(kinds.kubectl("get", "crd", f"{kind.plural}.{GROUP}", "--output=json"))
    conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    served = kinds.kubectl("api-resources", f"--api-group={GROUP}", "--categories=vastfleet", "--no-headers")
    assert f"{kind.plural} {kind.short} {GROUP}/v1alpha1 {str(kind.namespaced).lower()} {kind.name}" in {
        " ".join(line.split()) for line in served.splitlines()
    }


def test_explain_reads_well(kinds: Cluster):
    """`kubectl explain` tells of a field what it holds and means, and which ones must be given."""
    said = kinds.kubectl("explain", "fleet.spec.shapes")
    assert "What may be rented, in any mix that fits." in said
    assert "minRate\t<number> -required-\n    Rate that one instance must reach to be kept" in said
    assert "<no description>" not in kinds.kubectl("explain", "fleet", "--recursive")
    assert "secretRef" in kinds.kubectl("explain", "fleet.spec.instance.envFrom")
    assert "Probability that its rate is at least minRate" in kinds.kubectl("explain", "instance.status.pGood")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_taken_as_it_is(kinds: Cluster, example: Path):
    """Every example can be applied to a cluster, but for what would read the controller's own environment."""
    arguments = ("apply", "--dry-run=server", "--validate=strict", "-f", str(example))
    if example.name in READS_THE_CONTROLLER:
        with pytest.raises(KubectlError) as refused:
            kinds.kubectl(*arguments)
        assert READS_THE_CONTROLLER[example.name] in str(refused.value)
        return
    assert "(server dry run)" in kinds.kubectl(*arguments)


@pytest.mark.parametrize("first", range(0, len(gpus.NAMES), 50))
def test_every_gpu_and_region_is_taken(kinds: Cluster, first: int):
    """What the loader knows, the API server knows: all GPUs of vast.ai, all countries and groups, in any case."""
    shapes = ", ".join(f"{{gpu: {name}, minRate: 1}}" for name in gpus.NAMES[first : first + 50])
    codes = ", ".join(f'"{code}"' for code in [*regions.GROUPS, " no ", *sorted(regions.COUNTRIES)[first // 50 :: 3]])
    text = changed(in_spec(f"regions: [{codes}]"), (f"\n  - {GPU}\n    {RATE}", f" [{shapes}]"))
    assert "created" in kinds.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=text)


@pytest.mark.parametrize(
    "name", ["RTX_4090", "rtx-4090", "NVIDIA GeForce RTX 4090", "RTX 4070 Ti SUPER", "Quadro RTX 6000", "T4"]
)
def test_a_gpu_is_known_by_the_names_people_use(kinds: Cluster, name: str):
    """Spacing, case, the maker's name and its longer spellings do not matter in a cluster either."""
    text = changed((GPU, f"gpu: {name}"))
    assert "created" in kinds.kubectl("create", "--dry-run=server", "-f", "-", input=text)


@pytest.mark.parametrize(
    "change",
    [
        in_window('cron: "*/5 0-6,22 LW/2 jan-MAR MON#2,5L"'),
        in_window('cron: " 0  3 * * sun "'),
        in_window("timeZone: America/Argentina/Buenos_Aires"),
        in_window("timeZone: Etc/GMT+5"),
        in_spec('machines: {avoid: [{id: 7, reason: a, until: "2028-02-29T23:59:59.5+14:00"}]}'),
        in_instance("envFrom: [{secretRef: {name: a.b-c}}]"),
        in_instance(f"env: {{A_1: {'é' * 128}}}"),
    ],
    ids=lambda change: change[1].split("\n")[-2].strip()[:40],
)
def test_what_is_unusual_and_right_is_taken(kinds: Cluster, change: tuple[str, str]):
    """A rule in the cluster is no stricter than the loader's."""
    text = changed(change)
    assert "created" in kinds.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=text)


def test_the_largest_manifest_is_taken(kinds: Cluster):
    """What is within all bounds is also within what the rules may cost when they are run."""
    shapes = [
        f"{{gpu: GeForce RTX {name}, gpuCount: {n}, minRate: 1}}" for name in ("4090", "5090") for n in range(1, 26)
    ]
    windows = ['{cron: "*/5 1-5,7-9 1-15,L JAN-DEC MON-FRI,6L", durationMinutes: 1, timeZone: Europe/Berlin}'] * 50
    pins = [f'{{id: {n}, reason: {"r" * 300}, until: "2027-01-31T12:00:00.123456+02:00"}}' for n in range(1, 501)]
    variables = [f"A{n:04}: {'é' * 11}" for n in range(1000)]
    spec = {
        "machines": f"{{avoid: [{', '.join(pins[:250])}], prefer: [{', '.join(pins[250:])}]}}",
        "disruption": f"{{windows: [{', '.join(windows)}]}}",
        "regions": f"[{', '.join(['ZW'] * 250)}]",
    }
    text = changed(
        in_spec("\n  ".join(f"{name}: {value}" for name, value in spec.items())),
        (f"\n  - {GPU}\n    {RATE}", f" [{', '.join(shapes)}]"),
        in_instance(f"env: {{{', '.join(variables)}}}\n    onStart: {'x' * 4000}"),
    )
    assert load_text(text, name="f.yaml")
    assert "created" in kinds.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", input=text)


def test_a_value_of_env_is_in_no_refusal(kinds: Cluster):
    """However a variable of env is got wrong, the API server does not say back what it holds."""
    for line in (
        f"env: {{A: MARKER{'x' * 300}}}",
        f"env: {{A: MARKER{'é' * 200}}}",
        'env: {A: "MARKER\\0"}',
        "env: {9: MARKER}",
    ):
        with pytest.raises(KubectlError) as refused:
            kinds.kubectl("create", "--dry-run=server", "-f", "-", input=changed(in_instance(line)))
        assert "spec.instance.env" in str(refused.value)
        assert "MARKER" not in str(refused.value)


def test_a_fleet_stays_as_its_author_wrote_it(kinds: Cluster, namespace: str):
    """Nothing is filled in and nothing lost: applying the same again changes nothing, and `kubectl diff` shows none."""
    path = EXAMPLES[[example.name for example in EXAMPLES].index("production.yaml")]
    kinds.kubectl("apply", "-f", str(path), "--namespace", namespace)
    stored = json.loads(kinds.kubectl("get", "fleet", "steady", "--namespace", namespace, "--output=json"))
    assert stored["spec"] == YAML(typ="safe").load(path)["spec"]
    assert kinds.kubectl("diff", "-f", str(path), "--namespace", namespace) == ""
    assert "unchanged" in kinds.kubectl("apply", "-f", str(path), "--namespace", namespace)


def test_a_fleets_columns_say_how_it_stands(kinds: Cluster, namespace: str):
    """`kubectl get fleets` shows readiness, target, held, rate, money and the reason."""
    spec = YAML(typ="safe").load(changed())["spec"]
    status = {
        "observedGeneration": 1,
        "target": 6,
        "held": 5,
        "rate": 406.9,
        "spendPerHour": 2.005,
        "costPerUnit": 0.00493,
        "pending": 1,
        "conditions": [READY],
    }
    create(kinds, "Fleet", "provers", spec, status, "--namespace", namespace)
    shown = cells(kinds.kubectl("get", "vf", "--namespace", namespace))
    assert shown.pop("AGE")
    assert shown == {
        "NAME": "provers",
        "READY": "True",
        "TARGET": "6",
        "HELD": "5",
        "RATE": "406.9",
        "$/H": "2.005",
        "BUDGET": "1.5",
        "$/UNIT": "0.00493",
        "REASON": "TargetReached",
    }
    assert kinds.kubectl("wait", "--for=condition=Ready", "fleet/provers", "--namespace", namespace)


def test_an_instances_columns_say_where_and_how_good_it_is(kinds: Cluster, namespace: str):
    """`kubectl get instances` shows phase, place, rate, belief, price and the next run; its spec stays as written."""
    status = {
        "phase": "Admitted",
        "rate": 61.2,
        "pGood": 0.93,
        "runs": 3,
        "pricePerHour": 0.41,
        "nextRunAt": "2199-12-01T12:00:00Z",
        "instanceId": 41000061,
    }
    create(kinds, "Instance", "provers-a1b2c3d4", INSTANCE, status, "--namespace", namespace)
    shown = cells(kinds.kubectl("get", "vfi", "--namespace", namespace))
    assert shown.pop("AGE")
    assert shown == {
        "NAME": "provers-a1b2c3d4",
        "PHASE": "Admitted",
        "GPU": "RTX 4090",
        "REGION": "NO",
        "RATE": "61.2",
        "P(GOOD)": "0.93",
        "RUNS": "3",
        "$/H": "0.41",
        "NEXT": "2199-12-01T12:00:00Z",
    }
    with pytest.raises(KubectlError, match="spec: Invalid value: does not change once it is written"):
        kinds.kubectl(
            "patch",
            "vfi",
            "provers-a1b2c3d4",
            "--type=merge",
            '--patch={"spec":{"gpuCount":2}}',
            "--namespace",
            namespace,
        )


def test_a_machines_columns_say_what_it_is_worth(kinds: Cluster):
    """`kubectl get machines` shows what was measured, and until when the machine is left alone."""
    status = {
        "gpu": "RTX 4090",
        "rate": 48.5,
        "pGood": 0.02,
        "runCount": 2,
        "lastRunAt": "2020-11-30T12:00:00.5Z",
        "quarantinedUntil": "2199-12-01T12:00:00Z",
    }
    create(kinds, "Machine", "default-12345", {"machineId": 12345, "owner": "default"}, status)
    shown = cells(kinds.kubectl("get", "vfm", "default-12345"))
    assert shown.pop("AGE")
    assert shown.pop("LAST").endswith(("d", "y"))
    assert shown == {
        "NAME": "default-12345",
        "GPU": "RTX 4090",
        "RATE": "48.5",
        "P(GOOD)": "0.02",
        "RUNS": "2",
        "QUARANTINED": "2199-12-01T12:00:00Z",
    }
    kinds.kubectl("delete", "vfm", "default-12345")
