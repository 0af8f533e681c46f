"""What went wrong outside, named by what to do next.

Every foreign exception becomes one of these at its room's one boundary.

    Fault
    ├── Retry          not done, harmless to ask again later (`after` seconds, when known)
    ├── Refused        asked properly and told no; the same question will get the same answer
    ├── Gone           the thing does not exist
    ├── Unclear        it may or may not have been done; never repeat it, look first
    └── Misconfigured  only a person can mend it: key, permission, request

`reason` is a word of the one table; the text says what was asked and what came back, never a key or a token.
"""

from controller.model.reasons import Reason


class Fault(Exception):  # noqa: N818 - named by what to do next, not by "Error"
    """Base of all that goes wrong outside."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Retry(Fault):
    """Not executed, or harmless to repeat. `after`: seconds to wait, None when nobody said."""

    def __init__(self, reason: Reason, text: str, *, after: float | None = None) -> None:
        super().__init__(reason, text)
        self.after = after


class Refused(Fault):
    """The answer is no. `instance_id` is set when the refusal nevertheless left an instance behind."""

    def __init__(self, reason: Reason, text: str, *, instance_id: int | None = None) -> None:
        super().__init__(reason, text)
        self.instance_id = instance_id


class Gone(Fault):
    """The thing asked about does not exist (any more)."""


class Unclear(Fault):
    """The request may have been carried out. Only a later look can tell."""


class Misconfigured(Fault):
    """Nothing will change until a person acts."""
