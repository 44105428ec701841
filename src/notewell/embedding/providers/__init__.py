"""Opens embedders that call a provider over HTTP, without sending anything yet."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from notewell.embedding.http_calls import INSTALL_HINT, Service, missing_packages
from notewell.embedding.providers.apis import GEMINI, MISTRAL, OLLAMA, OPENAI, VOYAGE, Api
from notewell.embedding.providers.embedder import RemoteEmbedder
from notewell.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from notewell.settings import Settings

# OpenClaw's, for a remote provider and for a local server, which may have to load its model first.
QUERY_TIMEOUT_S, LOCAL_QUERY_TIMEOUT_S = 60.0, 300.0
INDEX_TIMEOUT_S, LOCAL_INDEX_TIMEOUT_S = 120.0, 600.0


def _open(api: Api, settings: Settings) -> RemoteEmbedder:
    """Return the embedder; raise EmbedderUnavailableError when a package or the key is missing."""
    if missing := missing_packages():
        raise EmbedderUnavailableError(f"{api.title} needs {' and '.join(missing)} (not installed)", hint=INSTALL_HINT)
    remote = settings.remote
    return RemoteEmbedder(
        api,
        _service(api, settings),
        model=settings.model,
        dimensions=remote.dimensions,
        extra_headers=remote.headers,
        concurrency=remote.concurrency,
        query_timeout_s=remote.query_timeout_seconds or (LOCAL_QUERY_TIMEOUT_S if api.is_local else QUERY_TIMEOUT_S),
        index_timeout_s=remote.index_timeout_seconds or (LOCAL_INDEX_TIMEOUT_S if api.is_local else INDEX_TIMEOUT_S),
    )


def _service(api: Api, settings: Settings) -> Service:
    remote = settings.remote
    # `remote.api_key` is sent to the named provider only: with `auto` it could belong to any.
    own_key = remote.api_key if settings.provider == api.name else ""
    keys = (own_key, *(os.environ.get(name, "") for name in api.key_variables))
    key = next((key.strip() for key in keys if key.strip()), "")
    if not key and api.needs_key and not remote.base_url:  # your own server may need none
        raise EmbedderUnavailableError(
            f"{api.title} needs an API key",
            hint=f"set {api.key_variables[0]}, or remote.api_key in your own settings",
        )
    sent = {"the API key": key} | {f"the header {name}": value for name, value in remote.headers.items()}
    for name, value in sent.items():
        if not (value.isascii() and value.isprintable()):
            raise EmbedderUnavailableError(
                f"{name} for {api.title} contains characters that cannot be sent",
                hint=f"check {' and '.join((*api.key_variables, 'remote.api_key', 'remote.headers'))}",
            )
    headers = {api.key_header: api.key_form.format(key=key)} if key else {}
    return Service(api.title, remote.base_url or api.base_url, headers | dict(remote.headers))


# The entry points of `notewell.embedders`.
open_gemini = partial(_open, GEMINI)
open_mistral = partial(_open, MISTRAL)
open_ollama = partial(_open, OLLAMA)
open_openai = partial(_open, OPENAI)
open_voyage = partial(_open, VOYAGE)
