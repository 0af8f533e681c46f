"""What an answer of vast.ai, or the lack of one, means we should do next. The one boundary for httpx's exceptions.

`http` asks `data` of each answer and `unanswered` of each exception; what comes out is of `model/faults`.

    4xx              not executed     Retry, Refused, Gone or Misconfigured, by the words in the answer
    5xx, HTML, cut   nobody knows     Retry when doing it twice is doing it once, else Unclear
    2xx              executed         data, unless `success` is false: then by the words, as above

Statuses alone do not tell: a wrong key is 401, 403 or 404, an offer that has gone is 400, 404, 410 or 200. So words
come first.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from controller.model.faults import Fault, Gone, Misconfigured, Refused, Retry, Unclear
from controller.model.reasons import Reason
from controller.vast.calls import CREATE, Call
from controller.vast.values import identity, line, nonnegative, parse

RATE_LIMIT_WAIT_S = 12.0  # when a 429 says nothing: vast.ai's documented penalty for creating too often
SPEND_LIMIT_WAIT_S = 900.0  # a new account's cap on spending rises by the hour, not by the second
DAY_S = 86_400.0
THRESHOLD = re.compile(r"threshold=(\d+(?:\.\d+)?)")
ECHO = re.compile(r"""\binput_value\b|["']input["']\s*:""")  # from here on a validator repeats what was sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer, read to its end. Header names are in lower case.

    `secrets` are what was sent and must not come back in any text about this answer.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def _spend_limited(reason: Reason, text: str) -> Fault:
    return Retry(reason, text, after=SPEND_LIMIT_WAIT_S)


# What the words of a failure mean, whatever its status: the first row that matches; a row may be for one call only.
_MEANINGS: tuple[tuple[str, Call | None, Callable[[Reason, str], Fault], Reason], ...] = (
    (r"auth_error|invalid user key|session expired|requires login", None, Misconfigured, Reason.AUTH_FAILED),
    (r"deprecated_endpoint", None, Misconfigured, Reason.ENDPOINT_RETIRED),
    (r"insufficient.credit", None, Refused, Reason.CREDIT_EXHAUSTED),
    (r"spend_rate_limit", None, _spend_limited, Reason.SPEND_LIMITED),
    (r"state change queued", None, Refused, Reason.GPU_TAKEN),
    (r"no_such_ask|already rented|not your own|no longer available|not_found", CREATE, Refused, Reason.OFFER_GONE),
    (r"invalid_token", None, Retry, Reason.LISTING_INCOMPLETE),
    (r"not_found|no_such_instance|invalid_id|no_pending_price_increase", None, Gone, Reason.MISSING),
    (r"no ssh keys found", None, Gone, Reason.MISSING),
    (r"invalid_(args|price|request)|bad_request|inputs are not permitted", None, Misconfigured, Reason.BAD_REQUEST),
    (r"label_too_long|no_ssh_key_for_vm|team_ssh_keys_not_supported", None, Misconfigured, Reason.BAD_REQUEST),
)


def data(answer: Answer, call: Call, *, now: float) -> Any:
    """The JSON object or array of a success; raises the Fault of anything else. `now` is in unix seconds."""
    said = parse(answer.body)
    if httpx.codes.is_success(answer.status) and _is_success(said):
        return said
    fault = _fault(answer, said, call, now)
    left = identity(said.get("new_contract")) if isinstance(said, dict) and call is CREATE else None
    if left is None:
        raise fault
    reason = Reason.BAD_ANSWER if isinstance(fault, Unclear) else fault.reason
    raise Refused(reason, f"{fault} (it left instance {left})", instance_id=left)


def unanswered(error: Exception, call: Call) -> Fault:
    """The Fault of what httpx, or the deadline around it, raised. Only a failure to connect proves nothing was sent."""
    name = type(error).__name__
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout | httpx.ProxyError):
        return Retry(Reason.UNREACHABLE, f"{call.name}: not sent ({name})")
    return lost(call, Reason.UNREACHABLE, f"{call.name}: no answer ({name})")


def lost(call: Call, reason: Reason, text: str, *, after: float | None = None) -> Fault:
    """Nobody knows what became of the call: ask again if that does no harm, else look first."""
    if call.repeatable:
        return Retry(reason, text, after=after)
    return Unclear(Reason.CREATE_UNCLEAR if call is CREATE else reason, text)


def _is_success(said: Any) -> bool:
    """Whether a 2xx is one: `success` decides where there is one, else the absence of an `error`."""
    if isinstance(said, dict):
        return bool(said.get("success", not said.get("error")))
    return isinstance(said, list)


def _fault(answer: Answer, said: Any, call: Call, now: float) -> Fault:
    words = _words(answer, said)
    text = f"{call.name}: vast.ai answered {answer.status}: {_without_secrets(words, answer.secrets)}"
    if answer.status == httpx.codes.TOO_MANY_REQUESTS:
        return _rate_limited(words, text, asked=_asked_wait(answer, said, now), now=now)
    if httpx.codes.is_server_error(answer.status) or answer.status == httpx.codes.REQUEST_TIMEOUT:
        return lost(call, Reason.SERVER_ERROR, text, after=_asked_wait(answer, said, now))
    for pattern, only, make, reason in _MEANINGS:
        if only in (None, call) and re.search(pattern, words.lower()):
            return make(reason, text)
    return _by_status(answer.status, said, call, text)


def _by_status(status: int, said: Any, call: Call, text: str) -> Fault:
    """The Fault of an answer whose words say nothing that we know."""
    match status:
        case 401 | 403:
            return Misconfigured(Reason.AUTH_FAILED, text)
        case 402:
            return Refused(Reason.CREDIT_EXHAUSTED, text)
        case 301 | 308:
            return Misconfigured(Reason.ENDPOINT_RETIRED, f"{text}: moved; the address is https://console.vast.ai")
        case 410 if call is not CREATE:
            return Misconfigured(Reason.ENDPOINT_RETIRED, text)
    if httpx.codes.is_client_error(status) and isinstance(said, dict):
        return Refused(Reason.OFFER_GONE if status == httpx.codes.GONE else Reason.BAD_REQUEST, text)
    return lost(call, Reason.BAD_ANSWER, text)


def _words(answer: Answer, said: Any) -> str:
    """What a failure says of itself: code and sentence, plain text, or else only what kind of thing came.

    Never more of a body than that, and nothing after a validator begins to repeat what was sent: keys stand there.
    """
    if isinstance(said, dict):
        sentence = next((said[key] for key in ("msg", "message", "detail") if isinstance(said.get(key), str)), "")
        code = said["error"] if isinstance(said.get("error"), str) else ""
        return ": ".join(part for part in (code, ECHO.split(sentence)[0]) if part) or "an error without a word"
    if httpx.codes.is_error(answer.status) and answer.body and not answer.body.lstrip().startswith((b"<", b"{", b"[")):
        return ECHO.split(answer.body.decode(errors="replace"))[0]
    return f"{len(answer.body)} bytes that are no answer ({line(answer.headers.get('content-type')) or 'of no type'})"


def _without_secrets(words: str, secrets: tuple[str, ...]) -> str:
    """One short line of `words`. The longest secret goes first, since a shorter one may be a part of it."""
    for secret in sorted(secrets, key=len, reverse=True):
        words = words.replace(secret, "***")
    return line(words)


def _rate_limited(words: str, text: str, *, asked: float | None, now: float) -> Fault:
    """A 429 was not executed. The daily search quota comes back at midnight UTC; a rate limit when it says, or soon."""
    if "search_quota_exceeded" in words:
        return Retry(Reason.QUOTA_EXCEEDED, text, after=asked if asked is not None else DAY_S - now % DAY_S)
    threshold = THRESHOLD.search(words)
    default = min(float(threshold[1]), DAY_S) if threshold else RATE_LIMIT_WAIT_S
    return Retry(Reason.RATE_LIMITED, text, after=asked if asked is not None else default)


def _asked_wait(answer: Answer, said: Any, now: float) -> float | None:
    """Seconds the server asks to be left alone, at most a day: by header, by the time of a reset, or in the body."""
    reset = nonnegative(answer.headers.get("x-ratelimit-reset"))
    asked = (
        nonnegative(answer.headers.get("retry-after")),
        max(0.0, reset - now) if reset is not None else None,
        nonnegative(said.get("retry_after")) if isinstance(said, dict) else None,
    )
    waits = [min(seconds, DAY_S) for seconds in asked if seconds is not None]
    return max(waits, default=None)
