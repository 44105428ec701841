"""A failed call comes in; the error that says what happened and what to do next goes out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from notewell.errors import ProviderError

if TYPE_CHECKING:
    from notewell.embedding.http.failures import RemoteFailure
    from notewell.embedding.providers.api import Api

_QUOTED = {"refused", "missing", "quota"}  # what the provider says about these is what the user needs to know


def provider_error(api: Api, model: str, failure: RemoteFailure) -> ProviderError:
    """Return the error for a failure of this provider; each kind has a next step of its own."""
    key_place = " or ".join((*api.key_variables, "remote.api_key"))
    hints = {
        "unreachable": api.unreachable_hint,
        "timeout": "try again later, or raise remote.query_timeout_seconds or remote.index_timeout_seconds",
        "broken_off": "try again later; `notewell index` goes on where it stopped",
        "rate_limited": f"run `notewell index` again {_when(failure.wait_s)}, or lower remote.concurrency",
        "quota": "check the plan and billing of the account, or choose another provider",
        "key": f"check {key_place}",
        "refused": "check model, remote.dimensions and remote.base_url",
        "missing": api.missing_hint.format(model=model),
        "server": f"try again {_when(failure.wait_s)}; `notewell index` goes on where it stopped",
        "nonsense": "check remote.base_url: another kind of server may be listening there",
        "misfit": "set remote.dimensions to the length that the model gives, then run `notewell index`",
    }
    quoted = f": {failure.detail}" if failure.kind in _QUOTED and failure.detail else ""
    return ProviderError(f"{failure.message}{quoted}", hint=hints[failure.kind], reason=failure.kind)


def _when(wait_s: float | None) -> str:
    return "later" if wait_s is None else f"in {math.ceil(wait_s)} s"
