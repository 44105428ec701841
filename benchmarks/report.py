"""Measured numbers in, Markdown tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TITLES = {
    "notewell": "notewell",
    "openclaw-json": "OpenClaw's layout",
    "openclaw-blob": "OpenClaw's layout, blobs",
    "lancedb": "LanceDB",
    "notewell-postgres": "PostgreSQL",
}
BASELINE = "openclaw-json"
MILLI = 1e3
MEGA = 1e-6

# label, key, factor to the unit shown, decimals, whether a ratio means anything
ROWS: tuple[tuple[str, str, float, int, bool], ...] = (
    ("index without embedding, s CPU", "build_cpu_s", 1, 2, True),
    ("index without embedding, s wall", "build_wall_s", 1, 2, True),
    ("peak memory while indexing, MB", "build_peak_bytes", MEGA, 0, True),
    ("no-change sync, ms CPU", "sync_cpu_s", MILLI, 1, True),
    ("one-file change, ms CPU", "edit_cpu_s", MILLI, 1, True),
    ("one-file change, ms wall", "edit_wall_s", MILLI, 1, True),
    ("one-file change, the note named, ms CPU", "named_edit_cpu_s", MILLI, 1, True),
    ("replacing a note of ten chunks p50, ms CPU", "replace_cpu_s", MILLI, 1, True),
    ("replacing a note of ten chunks, mean, ms CPU", "replace_mean_cpu_s", MILLI, 1, True),
    ("replacing a note of ten chunks, ms wall", "replace_wall_s", MILLI, 1, True),
    ("warm hybrid search p50, ms CPU", "hybrid_cpu_p50_s", MILLI, 2, True),
    ("warm hybrid search p95, ms CPU", "hybrid_cpu_p95_s", MILLI, 2, True),
    ("warm hybrid search p50, ms wall", "hybrid_wall_p50_s", MILLI, 2, True),
    ("its keyword leg p50, ms CPU", "keyword_leg_cpu_p50_s", MILLI, 2, True),
    ("its vector leg p50, ms CPU", "vector_leg_cpu_p50_s", MILLI, 2, True),
    ("cold search, query vector ready, s CPU", "cold_ready_cpu_s", 1, 2, True),
    ("cold `notewell search --keyword-only`, s CPU", "cold_keyword_cpu_s", 1, 2, True),
    ("the same, s wall", "cold_keyword_wall_s", 1, 2, True),
    ("the same, peak MB", "cold_keyword_peak_bytes", MEGA, 0, True),
    ("cold `notewell search` with the local model, s CPU", "cold_hybrid_cpu_s", 1, 2, True),
    ("the same, s wall", "cold_hybrid_wall_s", 1, 2, True),
    ("the same, peak MB", "cold_hybrid_peak_bytes", MEGA, 0, True),
    ("disk, MB", "disk_bytes", MEGA, 1, True),
    ("disk with the cache of vectors, MB", "disk_with_cache_bytes", MEGA, 1, True),
    ("vector recall@24", "recall_at_24", 1, 3, False),
    ("hit@6", "hit_at_6", 1, 3, False),
    ("questions asked for it", "hit_at_6_questions", 1, 0, False),
)


def size_table(size: int, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table of one size: a column a contestant, and the baseline as a multiple of notewell."""
    names = [name for name in TITLES if name in results]
    compared = "notewell" in results and BASELINE in results
    header = ["", *(TITLES[name] for name in names), *(["OpenClaw's layout / notewell"] if compared else [])]
    lines = [f"### {size:,} chunks", "", _line(header), _line(["---", *("--:" for _ in header[1:])])]
    counts = [f"{results[name]['chunks']:,}" for name in names]
    lines.append(_line(["chunks, as each cuts them", *counts, *([""] if compared else [])]))
    for label, key, factor, decimals, has_ratio in ROWS:
        values = [results[name].get(key) for name in names]
        if all(value is None for value in values):
            continue
        cells = ["-" if value is None else f"{value * factor:,.{decimals}f}" for value in values]
        if compared:
            cells.append(_ratio(results[BASELINE].get(key), results["notewell"].get(key)) if has_ratio else "")
        lines.append(_line([label, *cells]))
    return "\n".join(lines)


def small_table(numbers: Mapping[str, Any]) -> str:
    """Return the table of the small workspace that the real model embedded."""
    rows = [
        ("index", "cold_index"),
        ("search --keyword-only", "cold_keyword"),
        ("search", "cold_hybrid"),
    ]
    lines = ["### The command on about 50 chunks, embedded by the local model", ""]
    lines += [_line(["from a cold process", "s CPU", "s wall", "peak MB"]), _line(["---", "--:", "--:", "--:"])]
    for label, prefix in rows:
        if f"{prefix}_wall_s" not in numbers:
            lines.append(_line([f"`notewell {label}`", "-", "-", "-"]))
            continue
        cpu, peak = numbers[f"{prefix}_cpu_s"], numbers[f"{prefix}_peak_bytes"]
        cells = [_number(cpu, 1, 2), _number(numbers[f"{prefix}_wall_s"], 1, 2), _number(peak, MEGA, 0)]
        lines.append(_line([f"`notewell {label}`", *cells]))
    return "\n".join(lines)


def _number(value: float | None, factor: float, decimals: int) -> str:
    return "-" if value is None else f"{value * factor:,.{decimals}f}"


def _ratio(baseline: float | None, ours: float | None) -> str:
    if not baseline or not ours:
        return ""
    ratio = baseline / ours
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
