"""`notewell eval`: measure retrieval quality on test sets."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines
from notewell.cli.progress import shown_progress

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from notewell.evaluation.test_sets import Half


@click.command("eval", epilog="Example: notewell eval evals/corpus --compare")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--compare", is_flag=True, help="Run every way of searching on one index, and mark the best.")
@click.option("--embedder", metavar="NAME", help="Embed with this provider.  [default: provider]")
@click.option(
    "--measure",
    type=click.Choice(["documents", "evidence"]),
    default="documents",
    show_default=True,
    help="Rank documents, or measure what an agent gets to read of conversations.",
)
@click.option(
    "--half",
    type=click.Choice(["tuning", "held-out"]),
    help="Ask half of the queries: those that constants were chosen on, or the others.  [default: all]",
)
@click.option("--work", type=click.Path(path_type=Path), help="Keep the indexes here, so that the next run is quick.")
@common_options
def command(
    folders: tuple[Path, ...],
    *,
    compare: bool,
    embedder: str | None,
    measure: str,
    half: Half | None,
    work: Path | None,
    chosen: Chosen,
) -> None:
    """Measure nDCG, recall, hits and latency on test sets in BEIR layout, each FOLDER one set.

    Every document becomes a note of a real workspace and every query a real search. `--measure evidence` keeps the
    turns of conversations as transcripts and notes instead.
    """
    from notewell.evaluation.evidence import evaluate_evidence
    from notewell.evaluation.metrics import figures_document, figures_table
    from notewell.evaluation.runner import DEFAULT_VARIANT, VARIANTS, evaluate
    from notewell.evaluation.test_sets import load_set

    sets = [load_set(folder) for folder in folders]
    if half:
        sets = [eval_set.half(half) for eval_set in sets]
    variants = list(VARIANTS) if compare else [DEFAULT_VARIANT]
    flags = chosen.flags | ({"provider": embedder} if embedder else {})
    kept: AbstractContextManager[str | Path] = nullcontext(work) if work else tempfile.TemporaryDirectory()
    with kept as below, shown_progress() as progress:
        run = evaluate if measure == "documents" else evaluate_evidence
        figures = [
            each
            for eval_set in sets
            for each in run(
                eval_set,
                work=Path(below),
                variants=variants,
                flags=flags,
                progress=progress,
                announce=lambda text: click.echo(text, err=True),
            )
        ]
    if chosen.as_json:
        print_json(figures_document(figures))
    else:
        print_lines(figures_table(figures))
