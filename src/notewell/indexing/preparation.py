"""Turns documents into chunks with their searchable terms."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Literal

from notewell.chunking import CHUNKING_VERSION, chunk_document
from notewell.sources.transcripts import TRANSCRIPTS_VERSION
from notewell.text.lexicon import LEXICON_VERSION, index_terms
from notewell.text.redaction import REDACTION_VERSION
from notewell.types import PreparedChunk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from notewell.types import Chunk, Document, SpokenLine

SEARCHED_METADATA = ("title", "tags", "aliases", "description")  # front matter that says what a note is about


@dataclass(frozen=True, slots=True)
class Preparation:
    """The rules for chunks and terms; an index built by other rules is rebuilt."""

    style: Literal["markdown", "lines"] = "markdown"
    tokens: int = 400
    overlap: int = 80
    redacted: bool = False  # redact secrets in notes, too
    keywords: bool = True  # False: store no terms, so keyword search finds nothing

    @property
    def profile(self) -> str:
        """The rules as text, which the index stores."""
        rules = {"chunking": CHUNKING_VERSION, "lexicon": LEXICON_VERSION, "transcripts": TRANSCRIPTS_VERSION}
        rules |= {"redaction": REDACTION_VERSION} | ({"redacted": 1} if self.redacted else {})
        rules |= {} if self.keywords else {"keywords": 0}
        return json.dumps(rules | {"style": self.style, "tokens": self.tokens, "overlap": self.overlap}, sort_keys=True)

    def prepare(self, document: Document) -> list[PreparedChunk]:
        """Return the chunks of a document with their terms."""
        about = " ".join(document.metadata[key] for key in SEARCHED_METADATA if key in document.metadata)
        chunks = chunk_document(document, style=self.style, tokens=self.tokens, overlap=self.overlap)
        return self.with_terms(chunks, document.stamp.path, about)

    def prepare_messages(self, messages: Iterable[SpokenLine], path: str) -> list[PreparedChunk]:
        """Return the chunks of messages with their terms."""
        return self.with_terms([chunk for each in messages for chunk in self.chunk_message(each)], path)

    def chunk_message(self, message: SpokenLine) -> list[Chunk]:
        """Return the chunks of one message."""
        from notewell.chunking.lines import chunk_message

        return chunk_message(message, tokens=self.tokens)

    def with_terms(self, chunks: Sequence[Chunk], path: str, about: str = "") -> list[PreparedChunk]:
        """Return the chunks of one document with their terms; `about` is searched like its path."""
        found_by = cache(index_terms)  # chunks share the path, and those below one heading the heading

        def terms(chunk: Chunk) -> tuple[str, str]:
            if not self.keywords:
                return "", ""
            return index_terms(chunk.text), f"{found_by(chunk.context)} {found_by(f'{path} {about}')}".lstrip()

        # Of each message, each remembered entry, and all other text of a note.
        parts = Counter((chunk.turn, chunk.label) for chunk in chunks)
        return [PreparedChunk(chunk, partial(terms, chunk), parts[chunk.turn, chunk.label]) for chunk in chunks]
