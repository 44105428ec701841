"""Opens a remote embedder: a provider and the settings come in, an embedder that has called nobody yet goes out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from notewell.embedding.http.failures import EXTRA_HINT
from notewell.embedding.http.service import Service, missing_packages
from notewell.embedding.providers.embedder import RemoteEmbedder
from notewell.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from notewell.embedding.providers.api import Api
    from notewell.settings import Settings

# OpenClaw's: remote, then for a server on this machine, which may have to load its model first.
QUERY_TIMEOUT_S, LOCAL_QUERY_TIMEOUT_S = 60.0, 300.0
INDEX_TIMEOUT_S, LOCAL_INDEX_TIMEOUT_S = 120.0, 600.0


def opened(api: Api, settings: Settings) -> RemoteEmbedder:
    """Return the embedder; raise EmbedderUnavailableError when a package or the key is missing."""
    absent = missing_packages()
    if absent:
        raise EmbedderUnavailableError(f"{api.title} needs {' and '.join(absent)}, not installed here", hint=EXTRA_HINT)
    remote = settings.remote
    return RemoteEmbedder(
        api,
        service_of(api, settings),
        model=settings.model,
        dimensions=remote.dimensions,
        named_headers=remote.headers,
        concurrency=remote.concurrency,
        query_timeout_s=remote.query_timeout_seconds or (LOCAL_QUERY_TIMEOUT_S if api.is_local else QUERY_TIMEOUT_S),
        index_timeout_s=remote.index_timeout_seconds or (LOCAL_INDEX_TIMEOUT_S if api.is_local else INDEX_TIMEOUT_S),
    )


def service_of(api: Api, settings: Settings) -> Service:
    """Return where the provider is called, and with which headers; raise EmbedderUnavailableError without a key."""
    remote = settings.remote
    key = key_of(api, settings)
    if not key and api.needs_key and not remote.base_url:  # a server of your own may ask for none
        raise EmbedderUnavailableError(
            f"{api.title} needs an API key",
            hint=f"set {api.key_variables[0]}, or remote.api_key in your own settings",
        )
    for name, value in {"the API key": key, **remote.headers}.items():
        if not (value.isascii() and value.isprintable()):
            what = "the API key" if value == key else f"the header {name}"
            raise EmbedderUnavailableError(
                f"{what} for {api.title} holds characters that cannot be sent",
                hint=f"check {' and '.join((*api.key_variables, 'remote.api_key', 'remote.headers'))}",
            )
    headers = {api.key_header: api.key_form.format(key=key)} if key else {}
    return Service(api.title, remote.base_url or api.base_url, headers | dict(remote.headers))


def key_of(api: Api, settings: Settings) -> str:
    """Return the provider's key, from the settings or from its own variable; empty when there is none.

    `remote.api_key` belongs to the provider that is named: with `auto` nobody knows whose it is, so nobody gets it.
    """
    given = settings.remote.api_key if settings.provider == api.name else ""
    variables = (os.environ.get(name, "") for name in api.key_variables)
    return next((key.strip() for key in (given, *variables) if key.strip()), "")
