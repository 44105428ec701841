"""A contestant and its ground in, plain numbers out: what one worker process measures in one phase."""

from __future__ import annotations

import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contestant import CANDIDATES, MAX_RESULTS
from benchmarks.corpus import edited, notes_to_edit, save_questions, sections, write_corpus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.contestant import Contestant, Ground
    from benchmarks.vectors import BenchEmbedder

Numbers = dict[str, Any]

SYNCS = 7
EDITS = 9
REPLACED_SECTIONS = 8  # cut into ten chunks
REPLACEMENTS = 60  # so many that what is tidied up only now and then is in the mean
MOST_SEARCHES = 400
FEWEST_SEARCHES = 20
SEARCH_SECONDS = 8.0  # a measure of searches ends after this long: the slowest contestants need seconds for each
WARM_UP = 10  # searches before the clock counts: files read, codes cached


def prepare(ground: Ground, *, chunks: int) -> Numbers:
    """Write the notes, the questions and the vectors of the questions."""
    import numpy as np

    from benchmarks.vectors import BenchEmbedder

    started = time.perf_counter()
    ground.workspace.mkdir(parents=True)
    questions = write_corpus(ground.workspace, chunks=chunks)
    save_questions(ground.questions_file, questions)
    vectors = BenchEmbedder().embed_questions([q.text for q in questions], [q.answer for q in questions])
    np.save(ground.vectors_file, vectors)
    sizes = [path.stat().st_size for path in ground.workspace.rglob("*.md")]
    return {"files": len(sizes), "note_bytes": sum(sizes), "seconds": time.perf_counter() - started}


def measure_build(contestant: Contestant, embedder: BenchEmbedder) -> Numbers:
    """Index everything from nothing; the time of the embedder is not counted."""
    cpu, wall = _timed(contestant.build, embedder, cpu_clock(contestant))
    peak = peak_memory_bytes()  # before the chunks are counted below
    without_cache, with_cache = contestant.disk_bytes()
    return {
        "build_cpu_s": cpu,
        "build_wall_s": wall,
        "build_peak_bytes": peak,
        "disk_bytes": without_cache,
        "disk_with_cache_bytes": with_cache,
    }


def measure_updates(contestant: Contestant, embedder: BenchEmbedder, ground: Ground) -> Numbers:
    """Sync with nothing changed, then edit one note after another and bring each back."""
    numbers: Numbers = {}
    if contestant.sync():
        syncs = [_timed(contestant.sync, embedder, cpu_clock(contestant)) for _ in range(SYNCS)]
        numbers |= {"sync_cpu_s": _median(syncs, 0), "sync_wall_s": _median(syncs, 1)}
    clock = cpu_clock(contestant)
    numbers |= _edit_times("edit", contestant.update, embedder, ground, clock)
    named = getattr(contestant, "update_named", None)
    if named is None:  # who cannot be told which note changed looks at all of them
        return numbers | {"named_edit_cpu_s": numbers["edit_cpu_s"]}
    return numbers | _edit_times("named_edit", named, embedder, ground, clock)


def measure_replaced(contestant: Contestant, embedder: BenchEmbedder, ground: Ground) -> Numbers:
    """Replace all of a note of about ten chunks, told which one it is."""
    named = getattr(contestant, "update_named", None)
    if named is None:
        return {}
    path = ground.workspace / "memory" / "replaced.md"
    path.write_text(sections(REPLACED_SECTIONS, seed=0), encoding="utf-8")
    contestant.sync()
    times = []
    for number in range(1, REPLACEMENTS + 1):
        path.write_text(sections(REPLACED_SECTIONS, seed=number), encoding="utf-8")
        times.append(_timed(partial(named, path), embedder, cpu_clock(contestant)))
    path.unlink()
    contestant.sync()
    mean = statistics.mean(cpu for cpu, _ in times)
    return {"replace_cpu_s": _median(times, 0), "replace_mean_cpu_s": mean, "replace_wall_s": _median(times, 1)}


def cpu_clock(contestant: Contestant) -> Callable[[], float]:
    """Return what tells the CPU seconds of this process, and of the server that works for it."""
    clock: Callable[[], float] = getattr(contestant, "cpu_s", time.process_time)
    return clock


def _edit_times(
    name: str,
    update: Callable[[Path], object],
    embedder: BenchEmbedder,
    ground: Ground,
    clock: Callable[[], float],
) -> Numbers:
    edits = []
    for number, path in enumerate(notes_to_edit(ground.workspace, EDITS)):
        original = path.read_bytes()
        path.write_bytes(edited(original.decode(), number).encode())
        edits.append(_timed(partial(update, path), embedder, clock))
        path.write_bytes(original)
        update(path)
    return {f"{name}_cpu_s": _median(edits, 0), f"{name}_wall_s": _median(edits, 1)}


def measure_searches(contestant: Contestant, ground: Ground) -> Numbers:
    """Ask the questions, whole and leg by leg, in a process that has them all warm."""
    questions, vectors = ground.questions(), ground.question_vectors()
    found: dict[str, Sequence[Any]] = {}

    def hybrid(text: str) -> None:
        found[text] = contestant.hybrid(text, vectors[text])

    texts = [question.text for question in questions]
    numbers: Numbers = {}
    for name, ask in (
        ("hybrid", hybrid),
        ("keyword_leg", contestant.keyword_leg),
        ("vector_leg", lambda text: contestant.vector_leg(vectors[text])),
    ):
        times = _search_times(ask, texts, cpu_clock(contestant))
        numbers[f"{name}_searches"] = len(times)
        numbers[f"{name}_cpu_p50_s"] = _percentile([cpu for cpu, _ in times], 50)
        numbers[f"{name}_cpu_p95_s"] = _percentile([cpu for cpu, _ in times], 95)
        numbers[f"{name}_wall_p50_s"] = _percentile([wall for _, wall in times], 50)
    asked = [question for question in questions if question.text in found]
    right = [
        any(path == q.path and first <= q.line <= last for path, first, last in found[q.text][:MAX_RESULTS])
        for q in asked
    ]
    return numbers | {"hit_at_6": sum(right) / len(right), "hit_at_6_questions": len(right)}


def measure_recall(contestant: Contestant, ground: Ground) -> Numbers:
    """Compare the vector leg's best with those of an exact search in float32 over the same chunks."""
    import numpy as np

    embedder, vectors = ground.embedder(), ground.question_vectors()
    pairs = list(contestant.chunks())
    texts = [text for _, text in pairs]
    matrix = np.empty((len(texts), embedder.identity.dimensions), np.float32)
    for start in range(0, len(texts), 64):
        matrix[start : start + 64] = embedder.embed_documents(texts[start : start + 64])
    shares: list[float] = []
    until = time.perf_counter() + SEARCH_SECONDS
    for vector in list(vectors.values())[::2]:
        if len(shares) >= FEWEST_SEARCHES and time.perf_counter() > until:
            break
        best = np.argsort(-(matrix @ vector), kind="stable")[:CANDIDATES]
        exact = {pairs[i][0] for i in best}
        shares.append(len(exact & set(contestant.vector_leg(vector)[:CANDIDATES])) / len(exact))
    return {"chunks": len(pairs), "recall_at_24": sum(shares) / len(shares)}


def measure_one_search(contestant: Contestant, ground: Ground) -> Numbers:
    """One hybrid search; the parent measures the whole process."""
    question = ground.questions()[0]
    return {"hits": len(contestant.hybrid(question.text, ground.question_vectors()[question.text]))}


def peak_memory_bytes() -> int | None:
    """Return the most memory this process ever held; None where the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would also count the parent's memory before the new program was loaded
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _timed(
    work: Callable[[], object], embedder: BenchEmbedder, clock: Callable[[], float] = time.process_time
) -> tuple[float, float]:
    """Return CPU and wall seconds of `work` without those the embedder took."""
    own_cpu, own_wall = embedder.cpu_s, embedder.wall_s
    cpu, wall = clock(), time.perf_counter()
    work()
    cpu, wall = clock() - cpu, time.perf_counter() - wall
    return cpu - (embedder.cpu_s - own_cpu), wall - (embedder.wall_s - own_wall)


def _search_times(
    ask: Callable[[str], object], texts: Sequence[str], clock: Callable[[], float]
) -> list[tuple[float, float]]:
    until = time.perf_counter() + SEARCH_SECONDS
    for text in texts[-WARM_UP:]:
        ask(text)
    times: list[tuple[float, float]] = []
    # Spread over the whole corpus, in case there is not time for all.
    step = 7
    order = [texts[(i * step) % len(texts)] for i in range(MOST_SEARCHES)]
    for text in order:
        cpu, wall = clock(), time.perf_counter()
        ask(text)
        wall = time.perf_counter() - wall
        times.append((clock() - cpu, wall))
        if len(times) >= FEWEST_SEARCHES and time.perf_counter() > until:
            break
    return times


def _median(pairs: Iterable[tuple[float, float]], which: int) -> float:
    return statistics.median(pair[which] for pair in pairs)


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]
