"""A memory of its own in LanceDB: short texts with a vector, an importance and a category, on disk or in S3.

It is no engine of the index and knows nothing of notes. LanceDB is imported when a memory is opened.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from notewell.errors import (
    BadVectorError,
    EmbedderUnavailableError,
    IndexMismatchError,
    QueryError,
    RememberError,
    StoreError,
)
from notewell.settings.arguments import checked_call
from notewell.text import valid_unicode
from notewell.text.entries import IMPORTANCE, checked_category, checked_importance

if TYPE_CHECKING:
    from types import TracebackType

    from notewell.protocols import Embedder
    from notewell.settings import Settings
    from notewell.types import Category

    Vector = Sequence[float]  # for type checkers alone: whatever is given for one, `_checked_vector` looks at

INSTALL_HINT = 'run `pip install "notewell[lancedb]"`'
TABLE = "memories"
MOST_TRIES = 40  # to open a table that is being created,
PAUSE_S = 0.05  # with this pause: two seconds
MOST_HITS = 2**31 - 1  # that LanceDB takes as a limit
WRITES_PER_COMPACTION = 64  # 600 writes without any: 1,800 files, 17 MB, 58 ms a search; 15 ms once compacted
KEPT_VERSIONS = timedelta(hours=1)  # a search of another process ends long before

_COLUMNS = ("id", "text", "vector", "importance", "category", "created_at")
# Lance then refuses a second entry of the same id, also when two processes add it at once.
_PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}
_EMBEDDER = b"notewell.embedder"  # in the metadata of the table's schema; empty: the caller brings the vectors
# LanceDB's messages name lines of its own source, and bury the reason of an object store in debugging output.
_SOURCE_LINE = re.compile(r",? (?:location: Location \{.*|/\S+\.rs:\d+:\d+.*)", re.DOTALL)
_STORE_REASON = re.compile(r'<Message>(.*?)</Message>|message: "(.*?)"')
_STORE_ADDRESS = re.compile(r"uri: Some\(([^)?]+)")


@dataclass(frozen=True, slots=True)
class LanceEntry:
    """One remembered text."""

    id: str
    text: str
    vector: tuple[float, ...]  # as it was given; an embedder's has unit length
    importance: int  # 1 to 10
    category: Category
    created_at: datetime  # UTC


@dataclass(frozen=True, slots=True)
class LanceHit:
    """An entry that was found."""

    entry: LanceEntry
    score: float  # 1 / (1 + distance), 0 to 1, higher is better
    distance: float  # LanceDB's L2: the square of the Euclidean distance


class LanceMemory:
    """Texts in a table of LanceDB. Several processes may use it at once; each sees what the others wrote."""

    def __init__(self, database: Any, place: str, table: str, embedder: Embedder | None, settings: Settings) -> None:
        self._database = database
        self._place = place
        self._name = table
        self._embedder = embedder
        self._owns_embedder = embedder is None
        self._settings = settings
        self._opened: Any = None

    @classmethod
    @checked_call(QueryError)
    def open(
        cls,
        uri: str | Path,
        *,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
        table: str = TABLE,
        storage_options: Mapping[str, str] | None = None,
    ) -> LanceMemory:
        """Return the memory at a folder or an address such as `s3://bucket/folder`; it may be empty.

        Texts are embedded by `embedder`, or by the one that the settings choose: the user's if none are given. The
        caller closes an embedder it brought. `storage_options` go to LanceDB as they are: region, endpoint, keys.
        """
        try:
            import lancedb
            import pyarrow  # noqa: F401, ICN001 - said now, not at the first entry
        except ImportError as error:
            raise StoreError(
                f"LanceDB memory needs a package that is missing: {error.name}", hint=INSTALL_HINT
            ) from error
        if settings is None:
            from notewell.settings import load_settings

            settings = load_settings(None).settings
        place = os.fspath(uri)
        if "://" not in place:
            place = str(Path(place).expanduser().absolute())
        with _as_store_errors(place):
            # The interval of 0 looks for other processes' writes before every read.
            database = lancedb.connect(
                place,
                read_consistency_interval=timedelta(0),
                storage_options=dict(storage_options) if storage_options else None,
            )
            memory = cls(database, place, table, embedder, settings)
            memory._open_table()
        return memory

    def add(
        self,
        text: str,
        *,
        vector: Sequence[float] | None = None,
        importance: int = IMPORTANCE,
        category: Category = "other",
        id: str | None = None,  # noqa: A002 - the name of the field
        created_at: datetime | None = None,
    ) -> LanceEntry:
        """Store one text and return the entry; secrets in it are redacted. Without a vector the text is embedded.

        A new entry gets a random id and the present time, unless they are given. Raises RememberError for a value that
        cannot be stored and BadVectorError for a vector that does not fit; nothing is written then.
        """
        from notewell.text.redaction import redact

        if not isinstance(text, str) or not text.strip():
            raise RememberError("there is nothing to remember: the text is empty", hint="give the text to remember")
        if id is not None and (not isinstance(id, str) or not id.strip()):
            raise RememberError("the id of an entry is empty", hint="leave it out to get a new one")
        moment = datetime.now(UTC) if created_at is None else created_at
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise RememberError(
                "created_at has no time zone", hint="give one, such as datetime.now(UTC), or leave created_at out"
            )
        try:
            moment = moment.astimezone(UTC)
        except OverflowError as error:
            raise RememberError("created_at is beyond the last year", hint="give another time") from error
        importance, category = checked_importance(importance), checked_category(category)
        text = redact(valid_unicode(text)).text
        entry = LanceEntry(
            id=id or str(uuid.uuid4()),
            text=text,
            vector=self._embedded(text) if vector is None else _checked_vector(vector),
            importance=importance,
            category=category,
            created_at=moment,
        )
        self._insert(entry, embedded=vector is None)
        return entry

    @checked_call(QueryError)
    def search(
        self,
        query: str | Vector,
        limit: int = 5,
        min_score: float = 0.5,
        *,
        category: Category | None = None,
    ) -> list[LanceHit]:
        """Return the entries nearest to a text or a vector, the best first, each with a score of at least `min_score`.

        Every entry is compared; there is no approximation.
        """
        if limit < 1:
            raise QueryError(f"limit must be at least 1, got {limit}", hint="ask for 1 hit or more")
        if not 0 <= min_score <= 1:
            raise QueryError(f"min_score must be from 0 to 1, got {min_score}", hint="0 keeps every hit")
        wanted = None if category is None else checked_category(category, QueryError)
        if isinstance(query, str) and not query.strip():
            raise QueryError("the query is empty", hint="give a text or a vector")
        given = None if isinstance(query, str) else _checked_vector(query)
        table = self._open_table()
        if table is None:
            return []
        vector = self._embedded(query, is_query=True) if isinstance(query, str) else given
        assert vector is not None
        self._check_fit(table, vector, embedded=given is None)
        with _as_store_errors(self._place):
            asked = table.search(list(vector), vector_column_name="vector").distance_type("l2")
            asked = asked.limit(min(limit, MOST_HITS))
            if wanted is not None:
                asked = asked.where(f"category = {_quoted(wanted)}", prefilter=True)
            rows = asked.to_list()
        hits = [LanceHit(_entry_of(row), 1 / (1 + row["_distance"]), row["_distance"]) for row in rows]
        hits.sort(key=lambda hit: (hit.distance, hit.entry.created_at, hit.entry.id))
        return [hit for hit in hits if hit.score >= min_score]

    @checked_call(QueryError)
    def get(self, id: str) -> LanceEntry | None:  # noqa: A002 - the name of the field
        """Return the entry of this id; None where there is none."""
        table = self._open_table()
        if table is None:
            return None
        with _as_store_errors(self._place):
            rows = table.search().where(f"id = {_quoted(id)}").limit(1).to_list()
        return _entry_of(rows[0]) if rows else None

    @checked_call(QueryError)
    def delete(self, id: str) -> bool:  # noqa: A002 - the name of the field
        """Delete the entry of this id and say whether there was one.

        It is never found again, but its bytes stay in older versions of the files until `compact` removes them.
        """
        table = self._open_table()
        if table is None:
            return False
        with _as_store_errors(self._place):
            deleted = bool(table.delete(f"id = {_quoted(id)}").num_deleted_rows)
        if deleted:
            self._compact_sometimes(table)
        return deleted

    def count(self) -> int:
        """Return how many entries there are."""
        table = self._open_table()
        with _as_store_errors(self._place):
            return 0 if table is None else int(table.count_rows())

    @checked_call(QueryError)
    def compact(self, *, keep_versions: timedelta = KEPT_VERSIONS) -> None:
        """Merge small files and remove versions of the table older than `keep_versions`.

        Done by itself every 64 writes. `timedelta(0)` rewrites the whole table and keeps no byte of deleted entries;
        use it when no other process has the memory open.
        """
        import warnings

        if keep_versions < timedelta(0):
            raise QueryError("keep_versions cannot be negative", hint="timedelta(0) keeps no older version")
        table = self._open_table()
        if table is None:
            return
        with _as_store_errors(self._place), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what it says of other readers is said above
            if not keep_versions:  # LanceDB merges files, but rewrites a single one only when a tenth of it is deleted
                table.update(where="true", values_sql={"importance": "importance"})
            table.optimize(cleanup_older_than=keep_versions)

    def close(self) -> None:
        """Let go of the table, and of the embedder unless the caller brought it."""
        self._opened = None
        if self._owns_embedder and self._embedder is not None:
            self._embedder.close()
            self._embedder = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the table -------------------------------------------------------------------------------

    def _open_table(self) -> Any:
        """Return the table, or None while nobody has added an entry."""
        if self._opened is not None:
            return self._opened
        with _as_store_errors(self._place):
            table = self._find_table()
            if table is None:
                return None
            columns = tuple(table.schema.names)
        if sorted(columns) != sorted(_COLUMNS) or not _dimensions_of(table):
            named = ", ".join(columns)
            raise StoreError(
                f"{self._place}: the table {self._name!r} was not made by notewell; its columns are {named}",
                hint="open another table: LanceMemory.open(..., table='notewell')",
            )
        self._opened = table
        return table

    def _find_table(self) -> Any:
        """Return the table, or None; a name without a table is one that another process is still creating."""
        tries = 0
        while self._name in self._table_names():
            try:
                return self._database.open_table(self._name)
            except ValueError as error:
                tries += 1
                if tries == MOST_TRIES or "not found" not in str(error):
                    raise
                time.sleep(PAUSE_S)
        return None

    def _table_names(self) -> list[str]:
        names: list[str] = []
        page = self._database.list_tables()
        names += page.tables
        while page.page_token:
            page = self._database.list_tables(page_token=page.page_token)
            names += page.tables
        return names

    def _create_table(self, dimensions: int, *, embedded: bool) -> Any:
        import pyarrow as pa

        identity = str(self._chosen_embedder().identity) if embedded else ""
        schema = pa.schema(
            [
                pa.field("id", pa.string(), nullable=False, metadata=_PRIMARY_KEY),
                pa.field("text", pa.string(), nullable=False),
                pa.field("vector", pa.list_(pa.float32(), dimensions), nullable=False),
                pa.field("importance", pa.int8(), nullable=False),
                pa.field("category", pa.string(), nullable=False),
                pa.field("created_at", pa.timestamp("us", "UTC"), nullable=False),
            ],
            metadata={_EMBEDDER: identity.encode()},
        )
        try:
            with _as_store_errors(self._place):
                self._database.create_table(self._name, schema=schema)
        except StoreError:
            if self._open_table() is None:  # else another process was faster
                raise
        return self._open_table()

    def _insert(self, entry: LanceEntry, *, embedded: bool) -> None:
        import pyarrow as pa

        table = self._open_table() or self._create_table(len(entry.vector), embedded=embedded)
        self._check_fit(table, entry.vector, embedded=embedded)
        row = {name: getattr(entry, name) for name in _COLUMNS} | {"vector": list(entry.vector)}
        with _as_store_errors(self._place):
            rows = pa.Table.from_pylist([row], schema=table.schema)
            done = table.merge_insert("id").when_not_matched_insert_all().execute(rows)
        if not done.num_inserted_rows:
            raise RememberError(f"there is an entry {entry.id!r} already", hint="delete it first, or leave the id out")
        self._compact_sometimes(table)

    def _compact_sometimes(self, table: Any) -> None:
        if table.version % WRITES_PER_COMPACTION:
            return
        try:
            self.compact()
        except StoreError:  # another process is compacting; whoever writes the 64th version from now tries again
            return

    def _check_fit(self, table: Any, vector: Sequence[float], *, embedded: bool) -> None:
        dimensions = _dimensions_of(table)
        made_by = _made_by(table)
        if embedded and made_by and made_by != str(self._chosen_embedder().identity):
            raise IndexMismatchError(made_by, str(self._chosen_embedder().identity))
        if len(vector) != dimensions:
            raise BadVectorError(
                f"the vector has {len(vector)} dimensions, those of {self._place} have {dimensions}",
                hint="use the embedder that the memory was made with, or open another table",
            )

    # --- the embedder ----------------------------------------------------------------------------

    def _chosen_embedder(self) -> Embedder:
        if self._embedder is None:
            from notewell.embedding.selection import select_embedder

            table = self._open_table()
            selection = select_embedder(self._settings, built_with="" if table is None else _made_by(table))
            if selection.embedder is None:
                raise EmbedderUnavailableError(
                    f"there is no embedding provider for the text: {selection.reason}",
                    hint=selection.hint or "set provider in the settings, or give the vector",
                )
            self._embedder = selection.embedder
        return self._embedder

    def _embedded(self, text: str, *, is_query: bool = False) -> tuple[float, ...]:
        embedder = self._chosen_embedder()
        return _checked_vector(embedder.embed_query(text) if is_query else embedder.embed_documents([text])[0])


def _checked_vector(vector: Any) -> tuple[float, ...]:
    """Return the numbers in single precision, as LanceDB keeps them; raise BadVectorError for what is no vector."""
    import numpy as np

    try:
        with np.errstate(over="ignore"):  # too large for single precision is infinite, and told below
            row = np.asarray(vector, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise BadVectorError("the vector is not a row of numbers", hint="give a list of floats") from error
    if row.ndim != 1 or not row.size:
        raise BadVectorError(f"the vector has the shape {row.shape}", hint="give one row of numbers, not empty")
    if not np.isfinite(row).all():
        raise BadVectorError(
            "the vector holds NaN or infinity", hint="check the model that made it; nothing was stored"
        )
    return tuple(row.tolist())


def _made_by(table: Any) -> str:
    """Return the identity of the embedder of a table's vectors; empty when they were given."""
    identity: bytes = (table.schema.metadata or {}).get(_EMBEDDER, b"")
    return identity.decode()


def _dimensions_of(table: Any) -> int:
    """Return how long its vectors are; 0 for a column that holds anything else."""
    return int(getattr(table.schema.field("vector").type, "list_size", 0)) if "vector" in table.schema.names else 0


def _entry_of(row: Mapping[str, Any]) -> LanceEntry:
    values = {name: row[name] for name in _COLUMNS}
    created_at = row["created_at"].replace(tzinfo=UTC)  # LanceDB's own class for UTC compares, but prints otherwise
    return LanceEntry(**values | {"vector": tuple(row["vector"]), "created_at": created_at})


def _quoted(value: str) -> str:
    """Return a text as a literal of LanceDB's filters, where only the quote has a meaning."""
    return "'" + value.replace("'", "''") + "'"


@contextmanager
def _as_store_errors(place: str) -> Iterator[None]:
    """Raise what LanceDB, Arrow and the system raise as StoreError."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, TypeError) as error:
        raise StoreError(
            f"LanceDB cannot use {place}: {_reason_of(str(error))}",
            hint="check that it is a folder you may write, or a bucket that exists with its region, endpoint and keys",
        ) from error


def _reason_of(message: str) -> str:
    reasons: list[str] = [one or other for one, other in _STORE_REASON.findall(message)]
    address = _STORE_ADDRESS.search(message)
    if not reasons:
        return _SOURCE_LINE.sub("", message).strip()
    return reasons[-1] + (f" ({address[1]})" if address else "")
