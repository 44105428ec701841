"""Embeds queries, or says why only keyword search can answer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from notewell.errors import EmbedderError
from notewell.text.languages import LANGUAGE_NAMES, language_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from notewell.protocols import Embedder, Snapshot, Vector

KEYWORDS_ONLY = "keyword search only"
VECTORS_KEPT = 64  # agents repeat questions with another limit; 64 x 384 floats are 100 kB


class QueryEmbedding:
    """Embeds queries with one embedder and remembers the last few."""

    def __init__(self, embedder: Embedder, *, more_languages: Callable[[], str] = str) -> None:
        self._embedder = embedder
        self._more_languages = more_languages  # what to do for a language that it does not support
        self._vectors: dict[str, Vector] = {}
        self._lock = threading.Lock()

    @property
    def embedder(self) -> Embedder:
        """The embedder of the queries."""
        return self._embedder

    def vector_of(self, query: str, snapshot: Snapshot) -> tuple[Vector | None, str]:
        """Return the vector; or None, and a note for the reader that says why."""
        if not query.strip():
            return None, ""
        if reason := self._reason_against(query, snapshot):
            return None, reason
        try:
            return self._embedded(query), ""
        except EmbedderError as error:
            return None, f"{KEYWORDS_ONLY}: {error.message}; {error.hint}".rstrip("; ")

    def _reason_against(self, query: str, snapshot: Snapshot) -> str:
        counts, built_with, identity = snapshot.counts(), snapshot.embedder(), self._embedder.identity
        if not counts.chunks:
            return "nothing is indexed yet"
        if not counts.embedded:
            if counts.pending:
                return f"{KEYWORDS_ONLY}: nothing is embedded yet; run `notewell index`"
            return self._unsupported("the language of any note")
        if built_with != identity:
            return (
                f"{KEYWORDS_ONLY}: the index was built with {built_with}, settings ask for {identity}; "
                "run `notewell index`"
            )
        if not self._embedder.knows(query):
            return self._unsupported(LANGUAGE_NAMES.get(language_of(query), "this language"))
        return ""

    def _unsupported(self, language: str) -> str:
        reason = f"{KEYWORDS_ONLY}: {self._embedder.identity.model} does not support {language}"
        return f"{reason}; {self._more_languages()}".removesuffix("; ")

    def _embedded(self, query: str) -> Vector:
        vector = self._vectors.get(query)
        if vector is None:
            vector = self._embedder.embed_query(query)
            with self._lock:
                while len(self._vectors) >= VECTORS_KEPT:
                    del self._vectors[next(iter(self._vectors))]
                self._vectors[query] = vector
        return vector
