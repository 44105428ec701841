"""Opens embedders that call a provider over HTTP; nothing is sent before the first text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from notewell.embedding.http import INSTALL_HINT, Service, missing_packages
from notewell.embedding.providers.apis import GEMINI, MISTRAL, OLLAMA, OPENAI, VOYAGE, Api
from notewell.embedding.providers.embedder import RemoteEmbedder
from notewell.errors import EmbedderUnavailableError

if TYPE_CHECKING:
    from notewell.settings import Settings

# OpenClaw's, for a remote provider and for a server on this machine, which may have to load its model first.
QUERY_TIMEOUT_S, LOCAL_QUERY_TIMEOUT_S = 60.0, 300.0
INDEX_TIMEOUT_S, LOCAL_INDEX_TIMEOUT_S = 120.0, 600.0


def open_gemini(settings: Settings) -> RemoteEmbedder:
    """Return Gemini's embedder; the entry point `gemini` of `notewell.embedders`."""
    return _open(GEMINI, settings)


def open_mistral(settings: Settings) -> RemoteEmbedder:
    """Return Mistral's embedder; the entry point `mistral` of `notewell.embedders`."""
    return _open(MISTRAL, settings)


def open_ollama(settings: Settings) -> RemoteEmbedder:
    """Return Ollama's embedder; the entry point `ollama` of `notewell.embedders`."""
    return _open(OLLAMA, settings)


def open_openai(settings: Settings) -> RemoteEmbedder:
    """Return OpenAI's embedder; the entry point `openai` of `notewell.embedders`."""
    return _open(OPENAI, settings)


def open_voyage(settings: Settings) -> RemoteEmbedder:
    """Return Voyage's embedder; the entry point `voyage` of `notewell.embedders`."""
    return _open(VOYAGE, settings)


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
    # `remote.api_key` belongs to the provider that is named: with `auto` nobody knows whose it is, so nobody gets it.
    own_key = remote.api_key if settings.provider == api.name else ""
    keys = (own_key, *(os.environ.get(name, "") for name in api.key_variables))
    key = next((key.strip() for key in keys if key.strip()), "")
    if not key and api.needs_key and not remote.base_url:  # a server of your own may need none
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
