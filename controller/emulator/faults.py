"""Every refusal vast.ai is known to send, by name: status, body, and the odd content type.

Raised as Refusal by the rooms below the API and sent as it stands; scenarios name one by its key. The variety is the
real service's: one cause comes in several spellings, and clients have to know them all.
"""

from dataclasses import dataclass, field
from typing import Any

HTML = "text/html"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer: a JSON body, or text with its content type."""

    status: int
    body: Any
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


class Refusal(Exception):  # noqa: N818  an answer, raised to leave the handler early
    """Ends the handling of a request with this answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(str(answer.body))
        self.answer = answer


def _failed(status: int, error: str, msg: str) -> Answer:
    return Answer(status, {"success": False, "error": error, "msg": msg})


CATALOGUE: dict[str, Answer] = {
    "auth_error": _failed(404, "auth_error", "Invalid user key"),
    "auth_error_401": Answer(401, {"msg": "Invalid user key"}),
    "forbidden_html": Answer(403, "<html><body><h1>403 Forbidden</h1></body></html>", HTML),
    "login_required": Answer(403, {"error": "auth_error", "msg": "This action requires login."}),
    "bad_request": _failed(400, "bad_request", "Bad request"),
    "deprecated_endpoint": _failed(
        410, "deprecated_endpoint", "/api/v0/instances/ is deprecated. Use /api/v1/instances/ instead."
    ),
    "invalid_args": _failed(400, "invalid_args", "error 400/3467: Invalid args"),
    "invalid_price": _failed(400, "invalid_price", "error 400/3469: Invalid bid price"),
    "invalid_request": Answer(400, {"error": "invalid_request", "msg": "Error in query parameters"}),
    "invalid_token": Answer(400, {"error": "invalid_token", "msg": "after_token is not valid"}),
    "no_such_ask": _failed(404, "invalid_args", "error 404/3603: no_such_ask Instance type is not available."),
    "no_such_ask_410": _failed(410, "no_such_ask", "error 410/3907: no_such_ask Instance type is no longer available."),
    "no_such_ask_400": Answer(400, {"success": False, "error": "no_such_ask"}),
    "no_such_ask_200": _failed(200, "no_such_ask", "Instance type is already rented."),
    "not_your_own": _failed(
        403, "invalid_args", "error 403/3586: Offer is not your own. Hosts can only rent their own machines."
    ),
    "insufficient_credit": _failed(400, "insufficient_credit", "Your account lacks credit. Please add credit."),
    "insufficient_credit_200": _failed(200, "insufficient_credit", "Your account lacks credit."),
    "spend_rate_limit": _failed(400, "spend_rate_limit", "Your account has reached its spend rate limit."),
    "bid_too_low": _failed(400, "bid_too_low", "Bid is below the market; the instance is created stopped."),
    "label_too_long": _failed(400, "label_too_long", "label exceeds the limit 1024"),
    "not_found": _failed(404, "not_found", "Instance not found"),
    "no_such_instance": _failed(404, "no_such_instance", "Instance not found"),
    "invalid_id": _failed(404, "invalid_id", "no such instance"),
    "queued": _failed(
        200, "resources_unavailable", "Required resources are currently unavailable, state change queued."
    ),
    "no_ssh_keys": Answer(404, {"msg": "No SSH keys found for the user."}),
    "no_pending_price_increase": _failed(404, "no_pending_price_increase", "No such pending price increase."),
    "too_frequent": Answer(429, "API requests too frequent", TEXT),
    "rate_limit_exceeded": _failed(429, "rate_limit_exceeded", "API requests too frequent"),
    "search_quota_exceeded": Answer(429, {"error": "search_quota_exceeded", "msg": "Daily search quota exceeded."}),
    "bad_gateway": Answer(502, "<html><body><h1>502 Bad Gateway</h1></body></html>", HTML),
    "html_200": Answer(200, "<html><body>Vast.ai is being updated.</body></html>", HTML),
    "empty_200": Answer(200, "", TEXT),
    "empty_object": Answer(200, {}),
    "empty_list": Answer(200, {"instances": []}),
}


def refusal(name: str, *, msg: str | None = None, **more: Any) -> Refusal:
    """Return the named answer as an exception, with another text or further fields where given."""
    answer = CATALOGUE[name]
    if not isinstance(answer.body, dict):
        return Refusal(answer)
    body = answer.body | ({"msg": msg} if msg else {}) | more
    return Refusal(Answer(answer.status, body, answer.content_type, answer.headers))
