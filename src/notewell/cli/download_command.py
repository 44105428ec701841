"""`notewell download`: fetch an embedding model that runs on this machine."""

from __future__ import annotations

import click

from notewell import download_model
from notewell.cli.options import Chosen, common_options
from notewell.cli.output import print_json, print_lines
from notewell.cli.progress import shown_progress


@click.command("download", epilog="Example: notewell download embeddinggemma-300m")
@click.argument("model", required=False, default="")
@common_options
def command(model: str, *, chosen: Chosen) -> None:
    """Fetch a GGUF model, by name or as hf:owner/repository/file.gguf; Ctrl-C keeps what came.

    Without MODEL it is the one that the settings name, or embeddinggemma-300m.
    """
    with shown_progress() as progress:
        path = download_model(model, settings=chosen.resolved().settings, progress=progress)
    if chosen.as_json:
        print_json({"path": str(path), "bytes": path.stat().st_size})
    else:
        print_lines([str(path)])
