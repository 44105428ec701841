"""An update of the index in, its report out: with batch jobs where they are asked for or left to collect."""

from __future__ import annotations

import threading
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notewell.indexing.update import IndexUpdate
    from notewell.protocols import Embedder
    from notewell.settings import BatchSettings
    from notewell.types import IndexReport, ProgressCallback

NO_JOBS = "batch jobs are offered by OpenAI, Gemini, Voyage and Mistral only: the chunks were embedded the ordinary way"


@dataclass(frozen=True, slots=True)
class JobsAsked:
    """Whether jobs are made and waited for; `batch` and `wait` go before the settings, `stop` ends the waiting."""

    settings: BatchSettings
    batch: bool | None = None
    wait: bool | None = None
    stop: threading.Event | None = None

    def run(
        self,
        update: IndexUpdate,
        *,
        paths: Collection[str] | None = None,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> IndexReport:
        """Bring the index up to date; jobs that an earlier run has left are looked after in any case."""
        makes_jobs = self.settings.enabled if self.batch is None else self.batch
        if update.embedder is None or not (makes_jobs or _has_left_jobs(update)):
            return update.run(paths=paths, force=force, progress=progress)
        from notewell.embedding.batch.jobs import supports_jobs

        if not supports_jobs(update.embedder):
            report = update.run(paths=paths, force=force, progress=progress)
            return replace(report, notes=(*report.notes, NO_JOBS)) if self.batch else report
        return self._run_in_steps(
            update, update.embedder, makes_jobs=makes_jobs, paths=paths, force=force, progress=progress
        )

    def _run_in_steps(
        self,
        update: IndexUpdate,
        embedder: Embedder,
        *,
        makes_jobs: bool,
        paths: Collection[str] | None,
        force: bool,
        progress: ProgressCallback | None,
    ) -> IndexReport:
        from notewell.embedding.batch.jobs import open_jobs
        from notewell.indexing.batch_run import NEVER_SET, BatchRun
        from notewell.indexing.batch_steps import run_in_steps

        # A run that was not asked for jobs does not wait for those of an earlier one.
        waits = (self.settings.wait and makes_jobs) if self.wait is None else self.wait
        jobs = open_jobs(embedder, update.folder.path)
        settings = replace(self.settings, wait=waits)
        batch = BatchRun(jobs, settings, makes_jobs=makes_jobs, asked_by_name=self.batch is True)
        forced = [force]  # once: the runs after the first only fetch vectors

        def updated() -> IndexReport:
            now = bool(forced and forced.pop())
            return replace(update, batch=batch).run(paths=paths, force=now, progress=progress)

        with closing(batch):
            return run_in_steps(updated, batch, wait=waits, stop=self.stop or NEVER_SET, progress=progress)


def _has_left_jobs(update: IndexUpdate) -> bool:
    from notewell.embedding.batch.ledger import FOLDER

    return (update.folder.path / FOLDER).exists()
