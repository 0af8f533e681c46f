import pytest
from pydantic import SecretStr

from controller.model.env import resolve_env
from controller.model.faults import Misconfigured
from controller.model.fleet import EnvSource, InstanceSpec
from controller.model.manifest import load_text
from controller.model.reasons import Reason
from controller.model.workload import SecretRef
from tests.model.bad import changed, in_instance

FILES = {
    "a.env": "A=file\n\n  # a note\nB= with = and spaces \n",
    "bad.env": "A=1\nmarker\n",
    "wide.env": f"A={'m' * 300}\n",
}


def read_text(path: str) -> str:
    if path == "binary":
        return b"marker\xff".decode()
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


def instance(*sources: EnvSource, **env: str) -> InstanceSpec:
    secrets = {name: SecretStr(value) for name, value in env.items()}
    return InstanceSpec(image="a", env_from=sources, env=secrets)


def test_later_sources_win_and_env_wins_over_all() -> None:
    """Variables come from envFrom in its order, then from env; a file's values are taken as they stand."""
    spec = instance(EnvSource(variable="A"), EnvSource(file="a.env"), EnvSource(variable="C"), C="own")
    resolved = resolve_env(spec, {"A": "outer", "C": "outer"}, read_text)
    assert resolved == {"A": "file", "B": " with = and spaces ", "C": "own"}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (EnvSource(variable="GONE"), "variable GONE is not set"),
        (EnvSource(file="gone.env"), "file gone.env cannot be read: No such file"),
        (EnvSource(file="bad.env"), "file bad.env line 2 is not NAME=value"),
        (EnvSource(file="binary"), "file binary is not UTF-8"),
        (EnvSource(file="wide.env"), "variable A must be at most 256 bytes"),
        (EnvSource(secret_ref=SecretRef(name="token")), "secret token is to be had only in a cluster"),
    ],
)
def test_what_is_missing_is_named_and_no_value_is(source: EnvSource, says: str) -> None:
    """All that cannot be resolved is named at once, for a person to mend, and no value with it."""
    with pytest.raises(Misconfigured, match=says) as wrong:
        resolve_env(instance(source, EnvSource(variable="ALSO_GONE")), {}, read_text)
    assert wrong.value.reason is Reason.ENV_UNRESOLVED
    assert "ALSO_GONE" in str(wrong.value)
    assert "marker" not in f"{wrong.value!r} {wrong.value.__cause__!r}"
    assert "mmm" not in str(wrong.value)


def test_a_secret_of_a_cluster_may_stand_in_a_file() -> None:
    """A manifest for a cluster can be checked on the desk: a Secret is named there and not looked for."""
    text = changed(in_instance("envFrom: [{secretRef: {name: hf.token}}, {variable: A}]"))
    (loaded,) = load_text(text, name="f.yaml")
    first, second = loaded.fleet.spec.instance.env_from
    assert first.secret_ref == SecretRef(name="hf.token")
    assert (second.variable, second.secret_ref) == ("A", None)
