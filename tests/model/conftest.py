from collections.abc import Callable

import pytest

from tests.model.bad import changed


@pytest.fixture(scope="session")
def manifest() -> Callable[..., str]:
    """A fleet's text; each pair of arguments replaces a piece of it that must be there once."""
    return changed
