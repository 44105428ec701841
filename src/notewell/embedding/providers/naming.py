"""Names an embedding space behind HTTP: everything that changes a vector comes in, one hash goes out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from notewell.settings.masking import is_secret_header
from notewell.types import hash_text

if TYPE_CHECKING:
    from notewell.embedding.http.service import Service
    from notewell.embedding.providers.api import Api, Model


def provider_key(
    api: Api, service: Service, model: str, facts: Model, *, dimensions: int, headers: Mapping[str, str]
) -> str:
    """Return the hash of provider, address, model, dimensions asked for, prefixes and headers that are no secret.

    Neither the key nor the place of the workspace is in it: another key, another machine are the same space.
    """
    public = {name.lower(): value for name, value in headers.items() if not is_secret_header(name, value)}
    named = {
        "provider": api.name,
        "address": service.address,
        "model": model,
        "dimensions": dimensions,
        "prefixes": [facts.query_prefix, facts.document_prefix],
        "headers": public,
    }
    return hash_text(json.dumps(named, sort_keys=True))
