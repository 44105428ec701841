"""Who is called: an address and headers come in; the same fit for calls, and without secrets for messages, go out."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit, urlunsplit

PACKAGES = ("httpx", "stamina")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def missing_packages() -> list[str]:
    """Return which packages of the extra `remote` are not installed, without importing any."""
    return [name for name in PACKAGES if find_spec(name) is None]


@dataclass(frozen=True, slots=True)
class Service:
    """One provider at one address; a login in the address becomes a header."""

    title: str
    base_url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """The base URL without login, parameters and a last slash: fit for messages and for naming a provider."""
        try:
            parts = urlsplit(self.base_url)
            host = parts.netloc.rpartition("@")[2].lower()
        except ValueError:
            return self.base_url.rpartition("@")[2].rstrip("/")
        return urlunsplit((parts.scheme.lower(), host, parts.path.rstrip("/"), "", ""))

    @property
    def is_loopback(self) -> bool:
        """Whether the service runs on this machine."""
        try:
            return (urlsplit(self.base_url).hostname or "") in LOOPBACK
        except ValueError:
            return False

    @property
    def all_headers(self) -> dict[str, str]:
        """The headers of every request; one that was given wins over the login."""
        login = self._login
        own = {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"} if login else {}
        given = {name: value for name, value in self.headers.items() if value}
        return given if any(name.lower() == "authorization" for name in given) else own | given

    @property
    def secrets(self) -> frozenset[str]:
        """Every value that must not be shown: of headers and the login, and the words in them."""
        values = {*self.headers.values(), self._login}
        words = {word for value in values for word in value.replace(":", " ").split()}
        return frozenset({*values, *words} - {"", "Bearer"})

    @property
    def _login(self) -> str:
        try:
            return unquote(urlsplit(self.base_url).netloc.rpartition("@")[0])
        except ValueError:
            return ""
