import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model import gpus, regions


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("RTX_4090", "RTX 4090"),
        ("rtx 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("RTX 4090D", "RTX 4090D"),
        ("RTX 4080 SUPER", "RTX 4080S"),
        ("RTX 4070 Ti SUPER", "RTX 4070S Ti"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000Ada"),
        ("RTX A6000", "RTX A6000"),
        ("Quadro RTX 6000", "Q RTX 6000"),
        ("T4", "Tesla T4"),
    ],
)
def test_a_gpu_is_known_by_the_names_people_use(written: str, meant: str) -> None:
    """Spacing, case, the maker's name and its longer spellings do not matter."""
    assert gpus.normalise(written) == meant


@pytest.mark.parametrize("name", gpus.NAMES)
def test_every_gpu_keeps_vasts_own_spelling(name: str) -> None:
    """No two names of the table are taken for each other."""
    assert gpus.normalise(name) == name


@given(name=st.text())
def test_an_unknown_gpu_is_an_error_with_a_remedy(name: str) -> None:
    """Any other text is refused, with the nearest names or with how to write one."""
    with pytest.raises(ValueError, match=r"did you mean .+\?|write it as vast.ai does"):
        gpus.normalise(f"{name} abacus")


def test_every_country_is_in_one_group_except_antarctica() -> None:
    """The 249 countries of ISO 3166-1 and Kosovo are told apart by two capitals, each in one group."""
    grouped = [code for group in regions.GROUPS.values() for code in group]
    assert len(regions.COUNTRIES) == 250
    assert len(grouped) == len(set(grouped)) == 249
    assert set(regions.COUNTRIES) - set(grouped) == {"AQ"}
    assert all(re.fullmatch("[A-Z]{2}", code) for code in grouped)


@pytest.mark.parametrize(
    ("group", "inside", "outside"),
    [
        ("EU", {"IE", "GB", "CY", "XK", "UA"}, {"TR", "GE", "KZ", "US"}),
        ("NA", {"US", "CA", "GL"}, {"NA", "MX"}),
        ("AF", {"ZA", "NA", "EG"}, {"AF", "YE"}),
        ("AS", {"JP", "AF", "TW", "KG", "KZ"}, {"AS", "AU", "RU"}),
        ("LC", {"BR", "LC", "MX", "UY", "VE", "SR"}, {"US"}),
        ("OC", {"AU", "NZ", "AS"}, {"SL", "ID"}),
    ],
)
def test_a_group_wins_over_a_country_spelled_alike(group: str, inside: set[str], outside: set[str]) -> None:
    """NA is North America and AF is Africa; the countries of those codes are in their own groups."""
    expanded = regions.expand([group])
    assert inside <= expanded
    assert not outside & expanded


def test_regions_are_united() -> None:
    """Countries and groups add up, in any case."""
    assert regions.expand(["no", "NA", "US"]) == {"NO"} | regions.GROUPS["NA"]
    assert regions.expand([]) == frozenset()


@pytest.mark.parametrize(
    ("name", "code"), [("Norway", "NO"), ("norwey", "NO"), ("UK", "GB"), ("Europe", "EU"), ("Namibia", "AF")]
)
def test_an_unknown_region_is_an_error_with_what_was_meant(name: str, code: str) -> None:
    """A country's name is answered with its code, or its group's where the code means the group."""
    with pytest.raises(ValueError, match=f"did you mean {code}"):
        regions.expand([name])
