"""The environment of an instance, from the Secrets that a Fleet in the cluster refers to. Read anew at each use."""

import base64
import binascii

from controller.ledger.api import Api
from controller.ledger.objects import place_of
from controller.model.env import unfit
from controller.model.faults import Misconfigured
from controller.model.fleet import Fleet
from controller.model.reasons import Reason


class ClusterSecrets:
    """The loop's `Secrets`.

    Args:
        api: the server.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    async def __call__(self, fleet: Fleet) -> dict[str, str]:
        """A fleet's whole environment: envFrom in its order, then env. Raises a fault naming what is missing."""
        namespace, _ = place_of(fleet.name)
        env: dict[str, str] = {}
        for source in fleet.spec.instance.env_from:
            if source.secret_ref is None:
                raise Misconfigured(Reason.ENV_UNRESOLVED, "envFrom: in a cluster only secretRef is read")
            env |= await self._secret(namespace, source.secret_ref.name)
        env |= {name: value.get_secret_value() for name, value in fleet.spec.instance.env.items()}
        if wrong := unfit(env):
            raise Misconfigured(Reason.ENV_UNRESOLVED, f"spec.instance.envFrom: {'; '.join(wrong)}")
        return env

    async def _secret(self, namespace: str, name: str) -> dict[str, str]:
        try:
            body = await self._api.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        except Misconfigured as fault:
            raise Misconfigured(Reason.ENV_UNRESOLVED, f"Secret {namespace}/{name} may not be read here") from fault
        if body is None:
            raise Misconfigured(Reason.ENV_UNRESOLVED, f"Secret {namespace}/{name} does not exist")
        found = {}
        for key, value in (body.get("data") or {}).items():
            try:
                found[key] = base64.b64decode(value).decode()
            except (binascii.Error, UnicodeDecodeError):
                text = f"Secret {namespace}/{name}: {key} is not text"
                raise Misconfigured(Reason.ENV_UNRESOLVED, text) from None
        return found
