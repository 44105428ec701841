"""Defines the frozen values that flow through the pipeline.

Those that every sync or search creates by the thousand are named tuples, which are three times as fast as dataclasses.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Literal, NamedTuple, Self

SourceName = Literal["memory", "sessions"]
SearchMode = Literal["hybrid", "semantic", "keyword"]
Backend = Literal["builtin", "qmd"]
Category = Literal["preference", "fact", "decision", "entity", "other"]  # of a remembered fact


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text in hex, which identifies content everywhere."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Citation(NamedTuple):
    """Lines of a file as every surface writes them: `memory/x.md#L5-L9`, or `memory/x.md#L5` for a single line."""

    path: str
    first_line: int | None = None  # 1-based; None: the file as a whole
    last_line: int | None = None  # inclusive

    def __str__(self) -> str:
        if self.first_line is None:
            return self.path
        last = self.first_line if self.last_line is None else self.last_line
        return f"{self.path}#L{self.first_line}" + ("" if last == self.first_line else f"-L{last}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a path or a citation."""
        found = _CITED.fullmatch(text)
        if found is None:
            return cls(text)
        ends = sorted((int(found["first"]), int(found["last"] or found["first"])))
        return cls(found["path"], *ends)

    def lines_to_read(self, first_line: int = 1, lines: int | None = None) -> tuple[int, int | None]:
        """Return the first line and how many to read, from the arguments or else from the citation."""
        if self.first_line is None or first_line != 1 or lines is not None:
            return first_line, lines
        return self.first_line, (self.last_line or self.first_line) - self.first_line + 1


_CITED = re.compile(r"(?P<path>.+)#L(?P<first>[1-9]\d{0,8})(?:-L?(?P<last>[1-9]\d{0,8}))?", re.DOTALL | re.ASCII)


# --- sources -> chunking -----------------------------------------------------------------------


class FileStamp(NamedTuple):
    """The facts about a file from listing it."""

    source: SourceName
    path: str  # as stored and cited: "/" on every platform, relative to the workspace
    size: int  # bytes
    mtime_ns: int
    ctime_ns: int = 0  # changes even if the mtime is kept, as by `cp -p`; 0 on Windows
    inode: int = 0  # changes when the file is replaced


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read or stored, and why; reports list problems instead of failing."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a source, in stable order, and what could not be listed."""

    files: tuple[FileStamp, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Uncovered:
    """The number of Markdown files in a workspace that are not part of its memory."""

    count: int
    complete: bool = True  # False: counting was stopped, and there are more
    problems: tuple[Problem, ...] = ()  # folders that cannot be read

    def __str__(self) -> str:
        files = f"{self.count:,} Markdown file{'' if self.count == 1 else 's'}"
        return files if self.complete else f"more than {files}"


@dataclass(frozen=True, slots=True)
class Document:
    """A note or transcript as clean text: no BOM, NUL or lone surrogate, and newlines only."""

    stamp: FileStamp
    text: str  # with the front matter, so that line numbers are those of the file
    content_hash: str  # of the bytes on disk
    body_first_line: int = 1  # 1-based; the line after the front matter
    metadata: Mapping[str, str] = field(default_factory=dict)  # from the front matter
    dated: date | None = None  # from the file name or the front matter; None: evergreen
    private: bool = False  # hidden from groups


class SpokenLine(NamedTuple):
    """A message of a transcript as a line of text: `User: ...` or `Assistant: ...`."""

    line: int  # of the transcript, 1-based
    text: str  # without newlines
    turn: int  # number of the message in the conversation, 1-based


@dataclass(frozen=True, slots=True)
class Piece:
    """The next part of a growing document, and the position after it."""

    lines: tuple[SpokenLine, ...]
    position: str  # opaque; given back to the source to continue from here
    stamp: FileStamp  # of the file; valid for the document after the last piece only
    content_hash: str  # of the bytes read so far
    dated: date | None
    last: bool  # the end of the document for now
    from_start: bool = False  # the document is read from its beginning, not from the given position
    problems: tuple[Problem, ...] = ()  # in this part


# --- chunking -> store -------------------------------------------------------------------------


def embedded_text(context: str, text: str) -> str:
    """Return what the embedder sees of a chunk: the context, then the text."""
    return f"{context}\n{text}" if context else text


class EntryLabel(NamedTuple):
    """What the index stores of a remembered entry besides its text."""

    id: str
    category: Category
    importance: int  # 1 to 10


@dataclass(frozen=True)  # no slots: the hashes are computed once, on demand
class Chunk:
    """A contiguous run of lines of one document, small enough to embed."""

    first_line: int  # 1-based, inclusive
    last_line: int  # 1-based, inclusive
    text: str
    context: str = ""  # headings such as "Network > Guest wifi": searched and embedded, not shown as text
    turn: int = 0  # number of the message in a conversation, 1-based; 0 in notes
    label: EntryLabel | None = None  # of the remembered entry that contains it

    @cached_property
    def text_hash(self) -> str:
        return hash_text(self.text)

    @property
    def embedded_text(self) -> str:
        return embedded_text(self.context, self.text)

    @cached_property
    def embedded_hash(self) -> str:
        return hash_text(self.embedded_text)


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk and how to get its searchable terms, which a store asks for only if the chunk is new."""

    chunk: Chunk
    terms: Callable[[], tuple[str, str]]  # of the text, then of headings and path: in order, separated by blanks
    parts: int = 1  # chunks of its message or note


class StoredDocument(NamedTuple):
    """A document in the store, with enough to see whether the file changed."""

    stamp: FileStamp
    content_hash: str
    dated: date | None = None
    private: bool = False  # hidden from groups, as conversations always are


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk in the store."""

    id: int
    source: SourceName
    path: str
    dated: date | None
    first_line: int
    last_line: int
    text: str
    context: str
    turn: int = 0  # number of the message in a conversation, 1-based; 0 in notes
    parts: int = 1  # chunks of its message, entry or note
    label: EntryLabel | None = None  # of the remembered entry that contains it

    @property
    def embedded_hash(self) -> str:
        return hash_text(embedded_text(self.context, self.text))


class EntryChunk(NamedTuple):
    """A chunk of a remembered entry."""

    entry: str  # its id
    path: str
    chunk_id: int


class ChunkPlace(NamedTuple):
    """The place of a chunk in its document."""

    document: int  # the store's own number for the note or transcript
    turn: int
    parts: int


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk without a vector."""

    id: int
    embedded_hash: str
    embedded_text: str


@dataclass(frozen=True, slots=True)
class Counts:
    """The size of the index."""

    files: int
    chunks: int
    pending: int  # chunks without a vector yet
    embedded: int  # chunks with a vector; the rest is keyword-only, in a script that the embedder does not support


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """The size of one source in the index."""

    source: SourceName
    files: int
    chunks: int


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Identifies an embedding space: vectors are comparable only if all fields are equal."""

    provider: str  # "local", "openai", ...
    model: str
    key: str  # hash of everything else that changes a vector: weights, pooling, prefix, endpoint, dimensions
    dimensions: int

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}@{self.key[:12]}:{self.dimensions}"


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The size of the embedding cache, and its hits since it was created or cleared."""

    entries: int
    bytes: int
    max_entries: int
    oldest_use: datetime | None
    hits: int  # vectors from the cache
    misses: int  # vectors that were embedded and added

    @property
    def hit_rate(self) -> float | None:
        """The share of vectors from the cache; None before the first."""
        total = self.hits + self.misses
        return self.hits / total if total else None


# --- search ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """A search term; several tokens are a phrase, and with `prefix` the last token is a prefix."""

    tokens: tuple[str, ...]
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the memory that a search covers."""

    sources: frozenset[SourceName] | None = None  # None: all
    since: date | None = None  # inclusive
    until: date | None = None  # inclusive
    public_only: bool = False  # no private notes, and no conversations except `own_transcripts`
    own_transcripts: frozenset[str] = frozenset()  # paths
    without: frozenset[str] = frozenset()  # paths of other hidden notes, with `public_only`
    undated: bool = False  # include documents without a date despite `since` and `until`
    category: Category | None = None  # only remembered entries of this category

    @property
    def picks_documents(self) -> bool:
        """Whether it filters by more than the source."""
        return self.since is not None or self.until is not None or self.public_only or self.category is not None


EVERYTHING = Scope()


class Match(NamedTuple):
    """A chunk that keyword or vector search found; scores of the two are not comparable, higher is better."""

    chunk_id: int
    score: float  # BM25 with its sign flipped, or cosine similarity


class Candidate(NamedTuple):
    """A chunk with its raw scores; None where a score does not exist."""

    chunk_id: int
    cosine: float | None
    bm25: float | None
    pairs: float = 0.0  # BM25 of pairs of adjacent words in the query
    function_words: float = 0.0  # BM25 of the query's function words, for the best candidates only
    parts: int = 1  # chunks of its message or note


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that answers a query."""

    path: str
    first_line: int
    last_line: int
    score: float  # 0 to 1, higher is better
    snippet: str
    source: SourceName
    citation: str  # path#L5-L9
    found_by: SearchMode  # the search that found it; "hybrid": both
    vector_score: float | None = None  # cosine similarity
    text_score: float | None = None  # how much of the query the text matches, 0 to 1
    relevance: float | None = None  # the score without age; None if age does not count
    explanation: Mapping[str, float | str] | None = None  # only with `explain`
    entry: str | None = None  # id of the remembered entry; None in other text
    category: Category | None = None  # of that entry
    importance: int | None = None  # of that entry, 1 to 10
    replaces: tuple[EntryPlace, ...] = ()  # older entries that it replaced and that still exist
    replaced_by: EntryPlace | None = None  # the newest entry that replaced it
    dated: date | None = None  # the day of the entry, heading or note; None: undated


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """The place of a remembered entry."""

    entry: str  # its id
    citation: str


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of the index that answered."""

    files: int
    chunks: int
    pending: int  # chunks without a vector, which only keyword search finds
    stale: bool | None  # whether files changed since they were indexed; None: not checked


@dataclass(frozen=True, slots=True)
class Fallback:
    """Why another backend or provider than the one in the settings is used."""

    instead_of: str  # "qmd", or an embedding provider; JSON calls it `from`
    reason: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The hits of a search, how they were found, and notes for the reader."""

    query: str
    mode: SearchMode
    hits: tuple[Hit, ...]
    index: IndexState
    notes: tuple[str, ...] = ()
    backend: Backend = "builtin"
    fallback: Fallback | None = None  # why it is not the backend in the settings
    provider: str | None = None  # of the embedder of the query; None when keyword search answered
    model: str | None = None


@dataclass(frozen=True, slots=True)
class NoteText:
    """A part of a memory file."""

    path: str
    text: str
    first_line: int  # 1-based
    line_count: int
    truncated: bool
    next_first_line: int | None  # where to continue; None at the end of the file


# --- indexing ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a long operation."""

    stage: Literal["read", "embed", "jobs", "download"]  # a download counts megabytes
    done: int
    total: int


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of an indexing run."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0  # chunks that were embedded
    reused: int = 0  # chunks with a known vector
    unknown: int = 0  # keyword-only chunks, in a script that the embedder does not support
    pending: int = 0  # chunks without a vector
    jobs: int = 0  # batch jobs in progress, with some of the pending chunks
    rebuilt: bool = False
    postponed: int = 0  # transcripts that grew by too little (sync.sessions)
    bytes_read: int = 0  # of transcripts
    complete: bool = True  # False: out of time, or another process is indexing
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens in US dollars; None if unknown."""

    usd_per_million: float | None
    batch_usd_per_million: float | None  # through batch jobs
    basis: str  # the source of the price


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The estimated cost of embedding; None if the price is unknown."""

    provider: str
    model: str
    tokens: int  # to embed
    usd: float | None
    batch_usd: float | None  # through batch jobs
    basis: str  # the source of the price


@dataclass(frozen=True, slots=True)
class Check:
    """A check of `doctor` or `status --deep`."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    unusable: bool = False  # the index cannot be used until this is fixed


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job at a provider, not collected yet."""

    provider: str
    model: str
    id: str  # the provider's; empty while it is being created
    chunks: int
    since: str  # ISO 8601, UTC
