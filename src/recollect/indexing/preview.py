"""The files and the store in, what an indexing run would do out; nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.chunking.weight import QUARTERS, weigh
from recollect.indexing.plan import plan_changes
from recollect.types import IndexPreview, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.indexing.preparation import Preparation
    from recollect.protocols import Embedder, EmbeddingCache, Source, Store
    from recollect.types import Chunk, Document


def preview_changes(
    store: Store | None,
    sources: Sequence[Source],
    preparation: Preparation,
    embedder: Embedder | None,
    cache: EmbeddingCache | None,
    *,
    rebuild_reason: str = "",
) -> IndexPreview:
    """Read and chunk what changed, and count what is known already."""
    stored, pending = {}, 0
    if store and not rebuild_reason:
        with store.reading() as snapshot:
            stored, pending = dict(snapshot.documents()), snapshot.counts().pending
    listings = [source.list() for source in sources]
    problems = [problem for listing in listings for problem in listing.problems]
    plan = plan_changes(
        (stamp for listing in listings for stamp in listing.files), stored, unlisted=[p.path for p in problems]
    )
    by_name = {source.name: source for source in sources}
    documents: list[Document] = []
    for stamp in (*plan.added, *(stamp for stamp, _ in plan.touched)):
        try:
            documents.append(by_name[stamp.source].read(stamp))
        except OSError as error:
            problems.append(Problem(stamp.path, error.strerror or str(error)))
    known = {key: document.content_hash for key, document in stored.items()}
    new = [d for d in documents if (d.stamp.source, d.stamp.path) not in known]
    changed = [d for d in documents if known.get((d.stamp.source, d.stamp.path), d.content_hash) != d.content_hash]
    chunks = [prepared.chunk for document in (*new, *changed) for prepared in preparation.prepare(document)]
    return IndexPreview(
        added=tuple(document.stamp.path for document in new),
        changed=tuple(document.stamp.path for document in changed),
        removed=tuple(document.stamp.path for document in plan.removed),
        unchanged=plan.unchanged + len(documents) - len(new) - len(changed),
        chunks=len(chunks),
        tokens=sum(weigh(chunk.embedded_text) for chunk in chunks) // QUARTERS,
        known=_count_known(chunks, store, embedder, cache),
        pending=pending,
        rebuild_reason=rebuild_reason,
        problems=tuple(problems),
    )


def _count_known(
    chunks: Sequence[Chunk], store: Store | None, embedder: Embedder | None, cache: EmbeddingCache | None
) -> int:
    if embedder is None:
        return 0
    hashes = {chunk.embedded_hash for chunk in chunks}
    known = set(cache.get_many(embedder.identity, hashes)) if cache else set()
    if store:
        with store.reading() as snapshot:
            if snapshot.embedder() == embedder.identity:
                known |= set(snapshot.known_vectors(hashes - known))
    return sum(chunk.embedded_hash in known for chunk in chunks)
