from collections.abc import Callable

import pytest

FLEET = """\
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata:
  name: provers
spec:
  target:
    instances: 2
  budgetPerHour: 1.50
  shapes:
  - gpu: RTX 4090
    minRate: 59
  instance:
    image: example/prover:1.4
  benchmark:
    command: bench
"""


@pytest.fixture(scope="session")
def manifest() -> Callable[..., str]:
    """A fleet's text; each pair of arguments replaces a piece of it that must be there once."""

    def build(*replacements: tuple[str, str]) -> str:
        text = FLEET
        for old, new in replacements:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    return build
