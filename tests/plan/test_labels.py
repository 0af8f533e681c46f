import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model import labels

NONCE, LABEL = labels.make(owner="tests", fleet="provers", new_id="0123456789abcdef")
OTHERS = labels.make(owner="someone", fleet="provers", new_id="0123456789abcdef")[1]


def test_our_own_label_is_read_back():
    """What we write on an instance tells us its fleet and its mark again."""
    assert labels.read(LABEL, owner="tests") == labels.Mark("provers", NONCE)


@pytest.mark.parametrize(
    "label",
    [
        None,
        "",
        "C.123",
        "alice-training",
        "プロバー",
        "vf",
        "vf/tests",
        "vf/tests/provers",
        "vf/tests/provers/",
        f"vf/tests/provers/{NONCE[-6:]}",
        LABEL[:-1],
        LABEL + "0",
        LABEL + "/",
        "/" + LABEL,
        " " + LABEL,
        LABEL + "\n",
        LABEL.upper(),
        LABEL.replace("vf/", "vf2/"),
        LABEL.replace("/provers/", "/other/"),
        LABEL.replace("/tests/", "/test/"),
        LABEL.replace("/tests/", "/tests-2/"),
        LABEL.replace("/", "\N{DIVISION SLASH}"),
        OTHERS,
    ],
)
def test_what_is_not_ours_to_the_letter_is_foreign(label):
    """A label that is empty, typed, copied to another fleet, cut short or another owner's is never taken for ours."""
    assert labels.read(label, owner="tests") is None


@given(st.text(max_size=80))
def test_no_text_is_ours_by_chance(text):
    """Whatever people write on their instances, it is foreign."""
    assert labels.read(text, owner="tests") is None
