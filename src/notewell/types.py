"""The frozen values that flow through the pipeline; no behaviour beyond what a value says about itself.

Those made by the thousand in every sync or search are named tuples, which cost a third of a frozen dataclass to make.
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
    """Return the SHA-256 of `text`, in hex: the identity of everything that is content."""
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
        """Return what a path or a citation names; no file of a memory has a name that ends like a citation."""
        found = _CITED.fullmatch(text)
        if found is None:
            return cls(text)
        ends = sorted((int(found["first"]), int(found["last"] or found["first"])))
        return cls(found["path"], *ends)

    def lines_to_read(self, first_line: int = 1, lines: int | None = None) -> tuple[int, int | None]:
        """Return the first line and how many to read; what the caller asks for counts more than what is cited."""
        if self.first_line is None or first_line != 1 or lines is not None:
            return first_line, lines
        return self.first_line, (self.last_line or self.first_line) - self.first_line + 1


_CITED = re.compile(r"(?P<path>.+)#L(?P<first>[1-9]\d{0,8})(?:-L?(?P<last>[1-9]\d{0,8}))?", re.DOTALL | re.ASCII)


# --- sources -> chunking -----------------------------------------------------------------------


class FileStamp(NamedTuple):
    """What a listing knows of a file without reading it."""

    source: SourceName
    path: str  # as stored and cited: "/" on every platform, relative to the workspace
    size: int  # bytes
    mtime_ns: int
    ctime_ns: int = 0  # also changes when a file keeps its mtime, as with `cp -p`; 0 where there is none (Windows)
    inode: int = 0  # another one: another file was put in its place


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that could not be read or stored, and why; reports list them, nothing stops for them."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """Every file a source holds now, in stable order, and what could not be listed."""

    files: tuple[FileStamp, ...]
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Uncovered:
    """How many Markdown files of a workspace are not part of its memory."""

    count: int
    complete: bool = True  # False: counting was given up, and there are more
    problems: tuple[Problem, ...] = ()  # folders that cannot be read, so that nothing below them is counted

    def __str__(self) -> str:
        files = f"{self.count:,} Markdown file{'' if self.count == 1 else 's'}"
        return files if self.complete else f"more than {files}"


@dataclass(frozen=True, slots=True)
class Document:
    """One note or transcript as clean text: no BOM, no NUL, no lone surrogate, lines end in a newline only."""

    stamp: FileStamp
    text: str  # the whole file, front matter included, so that line numbers are the file's own
    content_hash: str  # of the bytes on disk
    body_first_line: int = 1  # 1-based; the line after the front matter
    metadata: Mapping[str, str] = field(default_factory=dict)  # from the front matter
    dated: date | None = None  # from the file name or the front matter; None is evergreen
    private: bool = False  # for its owner alone, not for groups


class SpokenLine(NamedTuple):
    """One message of a transcript as a line of text: `User: ...` or `Assistant: ...`."""

    line: int  # of the transcript, 1-based; lines without a message have none
    text: str  # no newline in it
    turn: int  # which message of the conversation it is, 1-based


@dataclass(frozen=True, slots=True)
class Piece:
    """The next part of a document that grows at its end, and where the document stands after it."""

    lines: tuple[SpokenLine, ...]
    position: str  # for the source alone to read: hand it back to go on from here
    stamp: FileStamp  # of the file; only after the last piece does it say how far the document is read
    content_hash: str  # of the bytes read so far
    dated: date | None
    last: bool  # nothing more is there now
    from_start: bool = False  # the document is read from its beginning, not from the position given
    problems: tuple[Problem, ...] = ()  # what of this part could not be read


# --- chunking -> store -------------------------------------------------------------------------


class EntryLabel(NamedTuple):
    """What the index keeps of a remembered entry besides its text."""

    id: str
    category: Category
    importance: int  # 1 to 10


@dataclass(frozen=True)  # no slots: the hashes are computed once, on demand
class Chunk:
    """A contiguous run of lines of one document, small enough to embed."""

    first_line: int  # 1-based, inclusive
    last_line: int  # 1-based, inclusive
    text: str
    context: str = ""  # heading trail, e.g. "Network > Guest wifi"; searched and embedded, never shown as text
    turn: int = 0  # which message of a conversation, 1-based; 0 in notes
    label: EntryLabel | None = None  # of the remembered entry that it is, or is a part of

    @cached_property
    def text_hash(self) -> str:
        return hash_text(self.text)

    @property
    def embedded_text(self) -> str:
        """What the embedder sees: where the chunk stands, then what it says."""
        return f"{self.context}\n{self.text}" if self.context else self.text

    @cached_property
    def embedded_hash(self) -> str:
        return hash_text(self.embedded_text)


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk and how to get its searchable terms, which a store asks for only if the chunk is new."""

    chunk: Chunk
    terms: Callable[[], tuple[str, str]]  # of the text, then of headings and path: in order, separated by blanks
    parts: int = 1  # chunks that its message, or its note, is cut into


class StoredDocument(NamedTuple):
    """What the store remembers of a document, enough to see whether the file changed."""

    stamp: FileStamp
    content_hash: str
    dated: date | None = None
    private: bool = False  # for its owner alone; conversations are so in any case


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it comes back from the store."""

    id: int
    source: SourceName
    path: str
    dated: date | None
    first_line: int
    last_line: int
    text: str
    context: str
    turn: int = 0  # which message of a conversation, 1-based; 0 in notes
    parts: int = 1  # chunks that its message, its entry, or its note, is cut into
    label: EntryLabel | None = None  # of the remembered entry that it is, or is a part of


class EntryChunk(NamedTuple):
    """A chunk that a remembered entry is, or is a part of."""

    entry: str  # its id
    path: str
    chunk_id: int


class ChunkPlace(NamedTuple):
    """Where a chunk stands among others."""

    document: int  # the store's own number for the note or transcript
    turn: int
    parts: int


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that has no vector yet."""

    id: int
    embedded_hash: str
    embedded_text: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How much the store holds."""

    files: int
    chunks: int
    pending: int  # chunks without a vector yet
    embedded: int  # chunks with a vector; the rest is keyword-only: the embedder does not support its script


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """How much of the index comes from one source."""

    source: SourceName
    files: int
    chunks: int


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Names one embedding space: two texts are comparable only if every field agrees."""

    provider: str  # "local", "openai", ...
    model: str
    key: str  # hash of everything else that changes a vector: weights, pooling, prefix, endpoint, dimensions
    dimensions: int

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}@{self.key[:12]}:{self.dimensions}"


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How much the cache holds and how useful it was since it was begun or cleared."""

    entries: int
    bytes: int
    max_entries: int
    oldest_use: datetime | None
    hits: int  # vectors taken from the cache
    misses: int  # vectors that had to be made, and were put in

    @property
    def hit_rate(self) -> float | None:
        """The share of vectors that came from the cache; None before there was any."""
        total = self.hits + self.misses
        return self.hits / total if total else None


# --- search ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for. Several tokens are a phrase; `prefix` lets the last token go on."""

    tokens: tuple[str, ...]
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of the memory a search may see."""

    sources: frozenset[SourceName] | None = None  # None: all
    since: date | None = None  # inclusive
    until: date | None = None  # inclusive
    public_only: bool = False  # neither private notes nor conversations, but for those named next
    own_transcripts: frozenset[str] = frozenset()  # conversations that may be seen all the same, by path
    without: frozenset[str] = frozenset()  # notes that may not be seen either, with `public_only`
    undated: bool = False  # documents without a date pass since and until, too
    category: Category | None = None  # only remembered entries of this one

    @property
    def picks_documents(self) -> bool:
        """Whether it is more than a choice of sources."""
        return self.since is not None or self.until is not None or self.public_only or self.category is not None


EVERYTHING = Scope()


class Match(NamedTuple):
    """A chunk that one leg found. Scores of a leg compare only with each other; higher is better."""

    chunk_id: int
    score: float  # BM25 with its sign flipped, or cosine similarity


class Candidate(NamedTuple):
    """A chunk with its raw scores; None where a score does not exist."""

    chunk_id: int
    cosine: float | None
    bm25: float | None
    pairs: float = 0.0  # BM25 of the query's neighbouring words that are neighbours in the text, too
    function_words: float = 0.0  # BM25 of the query's function words; only the best candidates are read for them
    parts: int = 1  # chunks that its message, or its note, is cut into


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
    found_by: SearchMode  # which of the two searches found it; "hybrid" when both did
    vector_score: float | None = None  # cosine similarity
    text_score: float | None = None  # how much of the query the text matches, 0 to 1
    relevance: float | None = None  # the score before age counted; None where age does not count
    explanation: Mapping[str, float | str] | None = None  # only with `explain`
    entry: str | None = None  # id of the remembered entry that it is; None in other text
    category: Category | None = None  # of that entry
    importance: int | None = None  # of that entry, 1 to 10
    replaces: tuple[EntryPlace, ...] = ()  # older entries that this one replaced, as far as they are still there
    replaced_by: EntryPlace | None = None  # the newest entry that stands in the place of this one
    dated: date | None = None  # the day that it is about: of the entry, of a heading or of the note; None: undated


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """Where a remembered entry stands."""

    entry: str  # its id
    citation: str


@dataclass(frozen=True, slots=True)
class IndexState:
    """How complete and fresh the index was when it answered."""

    files: int
    chunks: int
    pending: int  # chunks that only keyword search finds yet
    stale: bool | None  # some file changed since it was indexed; None when that was not checked


@dataclass(frozen=True, slots=True)
class Fallback:
    """Something else answers than the settings ask for."""

    instead_of: str  # "qmd", or an embedding provider; JSON calls it `from`
    reason: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What was found, how, and what the reader should know about it."""

    query: str
    mode: SearchMode
    hits: tuple[Hit, ...]
    index: IndexState
    notes: tuple[str, ...] = ()
    backend: Backend = "builtin"  # which gave this answer
    fallback: Fallback | None = None  # why it was not the one that the settings ask for
    provider: str | None = None  # of the embedder of the query; None when keyword search answered
    model: str | None = None


@dataclass(frozen=True, slots=True)
class NoteText:
    """A piece of one memory file, for reading on after a search."""

    path: str
    text: str
    first_line: int  # 1-based
    line_count: int
    truncated: bool
    next_first_line: int | None  # where to go on; None at the end of the file


# --- indexing ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of work done, for a progress bar or a log line."""

    stage: Literal["read", "embed", "jobs", "download"]  # of a download the megabytes are counted
    done: int
    total: int


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an indexing run did, and what it could not do."""

    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0  # chunks that went through the embedder
    reused: int = 0  # chunks whose vector was known already
    unknown: int = 0  # chunks in a script that the embedder does not support: keyword-only
    pending: int = 0  # chunks still without a vector
    jobs: int = 0  # batch jobs in progress at the provider: some of the pending chunks are in them
    rebuilt: bool = False
    postponed: int = 0  # transcripts that grew, but by too little to be indexed yet (sync.sessions)
    bytes_read: int = 0  # of transcripts
    complete: bool = True  # False: the time budget ran out or another process is indexing
    seconds: float = 0.0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """What an embedder charges for a million tokens, in US dollars; None where it is not known."""

    usd_per_million: float | None
    batch_usd_per_million: float | None  # through batch jobs
    basis: str  # where the numbers come from


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What embedding would cost, about; None where the price is not known."""

    provider: str
    model: str
    tokens: int  # of the texts that would have to be embedded
    usd: float | None
    batch_usd: float | None  # through batch jobs
    basis: str  # where the price comes from


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `doctor` or `status --deep`: what was checked, whether it passed, and what to do."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    unusable: bool = False  # the index cannot answer until this is fixed


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job at a provider whose vectors were not fetched yet."""

    provider: str
    model: str
    id: str  # the provider's; empty while it is being made
    chunks: int  # that it embeds
    since: str  # ISO 8601, UTC
