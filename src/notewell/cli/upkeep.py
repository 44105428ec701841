"""The commands around the memory: cache, download, config, eval and completion."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from notewell import NotewellError, QueryError
from notewell.agents.documents import document_of
from notewell.cli.options import Chosen, common_options
from notewell.cli.terminal import print_lines, print_notes, shown_progress
from notewell.settings import OPTIONS, WORKSPACE_FILE, flatten, user_file_of
from notewell.settings.openclaw_import import ignored_settings, translate_file, write_settings
from notewell.types import CacheStats

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from notewell.agents.documents import Json
    from notewell.evaluation.test_sets import Half
    from notewell.protocols import EmbeddingCache

_DAYS = re.compile(r"(\d{1,6})\s*d?(?:ays?)?")


@click.group("cache", epilog="Example: notewell cache stats")
def cache() -> None:
    """Manage the embedding cache.

    It keeps the vector of every text, so that the same text is never embedded twice.
    """


@cache.command("stats", epilog="Example: notewell cache stats --json")
@common_options
def stats(*, chosen: Chosen) -> None:
    """Show the size and the hit rate of the cache."""
    with _open_cache(chosen) as opened:
        found = opened.stats() if opened else None
    counts = document_of(found or CacheStats(0, 0, 0, None, 0, 0))
    document = {"enabled": found is not None, **counts, "hitRate": found.hit_rate if found else None}
    chosen.print(document, _stats_lines(found))


def _stats_lines(found: CacheStats | None) -> Iterator[str]:
    if found is None:
        yield "the cache is empty"
        return
    yield f"{found.entries:,} of {found.max_entries:,} vectors, {found.bytes / 2**20:.1f} MB"
    if found.hit_rate is not None:
        yield f"hit rate {found.hit_rate:.0%}: {found.hits:,} vectors from the cache, {found.misses:,} embedded"


@cache.command("prune", epilog="Example: notewell cache prune --older-than 30d")
@click.option("--older-than", default="30d", show_default=True, metavar="DAYS", help="Days since the last use.")
@common_options
def prune(*, older_than: str, chosen: Chosen) -> None:
    """Delete vectors that have not been used for a while."""
    days = _DAYS.fullmatch(older_than.strip())
    if not days:
        raise QueryError(f"--older-than {older_than}: not a number of days", hint="for example --older-than 30d")
    with _open_cache(chosen) as opened:
        removed = opened.prune(older_than_days=int(days[1])) if opened else 0
    chosen.print({"removed": removed}, [f"{removed:,} vectors deleted"])


@cache.command("clear", epilog="Example: notewell cache clear")
@common_options
def clear(*, chosen: Chosen) -> None:
    """Delete every vector in the cache; the index keeps its own."""
    with _open_cache(chosen) as opened:
        removed = opened.clear() if opened else 0
    chosen.print({"removed": removed}, [f"{removed:,} vectors deleted"])


@contextmanager
def _open_cache(chosen: Chosen) -> Iterator[EmbeddingCache | None]:
    with chosen.memory() as memory:
        if not memory.settings.cache.enabled:
            raise NotewellError("the cache is turned off", hint="turn it on with cache.enabled = true")
        yield memory.cache


@click.command("download", epilog="Example: notewell download embeddinggemma-300m")
@click.argument("model", required=False, default="")
@common_options
def download(model: str, *, chosen: Chosen) -> None:
    """Download an embedding model.

    MODEL is the name of a GGUF model or hf:owner/repository/file.gguf; by default the one in the settings, or
    embeddinggemma-300m. Ctrl-C pauses the download; the same command resumes it. No workspace is needed.
    """
    from notewell import download_model

    settings = chosen.resolved(chosen.folder_if_any()).settings
    with shown_progress() as progress:
        path = download_model(model, settings=settings, progress=progress)
    chosen.print({"path": str(path), "bytes": path.stat().st_size}, [str(path)])


@click.group("config", short_help="Show the settings and where they come from.", epilog="Example: notewell config show")
def config() -> None:
    """Show the settings in use and the files they come from, or import settings of OpenClaw."""


@config.command("show", epilog="Example: notewell config show --set query.max_results=3")
@common_options
def show(*, chosen: Chosen) -> None:
    """Show every setting and where it was set."""
    workspace = chosen.folder_if_any()
    resolved = chosen.resolved(workspace)
    values = {key: OPTIONS[key].public(value) for key, value in flatten(resolved.settings).items()}
    origins = resolved.origins
    notes = [*resolved.notes, *ignored_settings(workspace)]
    width = max(len(key) for key in OPTIONS)
    chosen.print(
        {"settings": {key: {"value": value, "from": origins[key]} for key, value in values.items()}, "notes": notes},
        (
            f"{key:{width}}  {value!r}" + ("" if origins[key] == "default" else f"  ({origins[key]})")
            for key, value in values.items()
        ),
        notes=notes,
    )


@config.command("path", epilog="Example: notewell config path")
@common_options
def path(*, chosen: Chosen) -> None:
    """Show the paths of the settings files, and whether they exist."""
    workspace = chosen.folder_if_any()
    files = {"user": user_file_of(os.environ)[0]} | ({"workspace": workspace / WORKSPACE_FILE} if workspace else {})
    chosen.print(
        {name: {"path": str(file), "exists": file.exists()} for name, file in files.items()},
        (f"{name:10} {file}{'' if file.exists() else '  (does not exist)'}" for name, file in files.items()),
    )
    print_notes(ignored_settings(workspace))


@config.command("import", epilog="Example: notewell config import ~/.openclaw/openclaw.json --dry-run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="Print the settings file, secrets masked, and write nothing.")
@click.option("--replace", "replace_file", is_flag=True, help="Replace your settings file; the old one is kept.")
@common_options
def import_(file: Path, *, dry_run: bool, replace_file: bool, chosen: Chosen) -> None:
    """Translate settings of OpenClaw into your settings file.

    FILE is YAML, JSON, JSON5 or TOML, with OpenClaw's names. Every key that could not be translated is reported.
    """
    found = translate_file(file.expanduser())
    target = user_file_of(os.environ)[0]
    kept = None if dry_run else write_settings(target, found.to_toml(), replace=replace_file)
    count = len(found.values) + sum(map(len, found.by_agent.values()))
    chosen.print(
        {
            "file": str(target),
            "written": not dry_run,
            "backup": str(kept) if kept else None,
            "settings": _public(found.values),
            "agents": {agent: _public(values) for agent, values in found.by_agent.items()},
            "leftOut": [{"key": each.key, "reason": each.reason} for each in found.left_out],
            "notes": found.notes,
        },
        [found.to_toml(public=True).rstrip("\n")] if dry_run else [f"{count} settings written to {target}"],
        notes=[
            *([f"the previous file is kept as {kept}"] if kept else []),
            *found.notes,
            *(f"left out: {each.key}: {each.reason}" for each in found.left_out),
        ],
    )


def _public(values: dict[str, object]) -> Json:
    return {key: OPTIONS[key].public(value) for key, value in values.items()}


@click.command("eval", epilog="Example: notewell eval evals/corpus --compare")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--compare", is_flag=True, help="Compare all search modes and variants on one index.")
@click.option("--embedder", metavar="NAME", help="Embedding provider.  [default: provider]")
@click.option(
    "--measure",
    type=click.Choice(["documents", "evidence"]),
    default="documents",
    show_default=True,
    help="Rank documents, or measure how much evidence of conversations an agent gets to read.",
)
@click.option(
    "--half",
    type=click.Choice(["tuning", "held-out"]),
    help="Run only half of the queries: those used for tuning, or the others.  [default: all]",
)
@click.option("--work", type=click.Path(path_type=Path), help="Keep the indexes here, to make the next run faster.")
@common_options
def evaluate(
    folders: tuple[Path, ...],
    *,
    compare: bool,
    embedder: str | None,
    measure: str,
    half: Half | None,
    work: Path | None,
    chosen: Chosen,
) -> None:
    """Measure retrieval quality on test sets.

    Each FOLDER is a test set in BEIR layout. Every document becomes a note of a real workspace and every query a real
    search; `--measure evidence` indexes the turns of conversations as transcripts and as notes instead.
    """
    from notewell.evaluation.evidence import evaluate_evidence
    from notewell.evaluation.metrics import figures_document, figures_table
    from notewell.evaluation.runner import DEFAULT_VARIANT, VARIANTS, evaluate
    from notewell.evaluation.test_sets import load_set

    sets = [load_set(folder) for folder in folders]
    if half:
        sets = [eval_set.half(half) for eval_set in sets]
    run = evaluate if measure == "documents" else evaluate_evidence
    kept: AbstractContextManager[str | Path] = nullcontext(work) if work else tempfile.TemporaryDirectory()
    with kept as folder, shown_progress() as progress:
        figures = [
            each
            for eval_set in sets
            for each in run(
                eval_set,
                work=Path(folder),
                variants=list(VARIANTS) if compare else [DEFAULT_VARIANT],
                flags=chosen.flags | ({"provider": embedder} if embedder else {}),
                progress=progress,
                announce=lambda text: click.echo(text, err=True),
            )
        ]
    chosen.print(figures_document(figures), figures_table(figures))


@click.command("completion", epilog='Example: eval "$(notewell completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    Add it to your shell's start-up file.
    """
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    assert complete is not None
    print_lines([complete(ctx.find_root().command, {}, "notewell", "_NOTEWELL_COMPLETE").source()])
