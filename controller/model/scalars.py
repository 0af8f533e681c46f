"""Which YAML scalars mean the same to every reader. Used by `document.py` to read and by `dump.py` to write.

YAML 1.1 readers, kubectl among them, take NO for false, 010 for eight, 1:30 for ninety and 2026-01-02 for a day; YAML
1.2 readers do not. Here a plain scalar is a plain decimal number, true, false, null or text to every reader.
"""

import math
import re

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?\Z")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n"})
_READ_DIFFERENTLY = re.compile(
    r"""[-+]?[0-9][0-9_]*(:[0-5]?[0-9])*(\.[0-9_]*)?([eE][-+]?[0-9]+)?\Z  # 1_0, 010, 1:30, +5, 1.
    | [-+]?\.[0-9][0-9_]*([eE][-+]?[0-9]+)?\Z                             # .5
    | [-+]?0(b[01_]+|o[0-7_]+|x[0-9a-fA-F_]+)\Z
    | [-+]?\.(inf|Inf|INF)\Z | \.(nan|NaN|NAN)\Z
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?\Z                        # a day, or a moment of it
    | (=|<<)\Z
    """,
    re.VERBOSE,
)


class Ambiguous(Exception):  # noqa: N818 - says what the scalar is
    """Readers differ about this scalar; the text says what to write instead."""


def is_truth_word(text: str) -> bool:
    """Whether some reader takes this plain scalar for true or false: NO, yes, off, ..."""
    return text.lower() in _TRUTHS


def read_plain(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar. Raises Ambiguous."""
    if text in _NULLS:
        return None
    if text in ("true", "false"):
        return text == "true"
    if is_truth_word(text):
        raise Ambiguous("some readers take this for true or false: write true or false, or quote it if it is text")
    if match := _NUMBER.match(text):
        value = float(text) if match[2] or match[3] else int(text)
        if not math.isfinite(value):
            raise Ambiguous("too large a number")
        return value
    if _READ_DIFFERENTLY.match(text):
        raise Ambiguous(
            "readers differ about this: write a plain decimal number such as 10 or 0.5, or quote it if it is text"
        )
    return text


def needs_quotes(text: str) -> bool:
    """Whether this text, written plain, would be read as something else by some reader."""
    try:
        return not isinstance(read_plain(text), str)
    except Ambiguous:
        return True
