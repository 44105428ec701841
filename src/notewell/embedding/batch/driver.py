"""What a provider's batch jobs look like from here: one protocol, and the values that cross it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

JobState = Literal["running", "done", "failed", "expired", "cancelled"]


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as its provider tells of it; a state that nobody knows counts as running, up to the deadline."""

    id: str
    state: JobState
    said: str  # the state in the provider's own words
    reason: str = ""  # why it failed, as far as the provider says
    result_files: Sequence[str] = ()  # answers and errors, whatever there is of them

    @property
    def is_over(self) -> bool:
        return self.state != "running"


@dataclass(frozen=True, slots=True)
class LineAnswer:
    """What became of one text: `row` is a vector, not checked yet; without one, `reason` says why."""

    custom_id: str
    row: Any = None
    reason: str = ""


class JobDriver(Protocol):
    """Speaks to one provider. Every method that calls it raises RemoteFailure when it cannot."""

    @property
    def inputs_a_job(self) -> int:
        """The most texts that the provider takes in one job."""
        ...

    @property
    def bytes_a_number(self) -> float:
        """How long a number of a vector is in the results; it decides how many texts fit into one download."""
        ...

    def line(self, custom_id: str, text: str) -> dict[str, Any]:
        """Return the line of the input file that asks for the vector of `text`."""
        ...

    def upload(self, name: str, content: bytes) -> str:
        """Send the input file and return its id."""
        ...

    def create(self, file_id: str, mark: str) -> JobView:
        """Begin the job: from here on it costs money. Never tries twice: see `find`."""
        ...

    def find(self, mark: str) -> JobView | None:
        """Return the job that was created with this mark, if there is one."""
        ...

    def look(self, job_id: str) -> JobView: ...

    def cancel(self, job_id: str) -> None: ...

    def answers(self, file_id: str) -> Iterator[LineAnswer]:
        """Download a result file and yield its lines; a line that cannot be read is left out."""
        ...

    def find_file(self, name: str) -> str:
        """Return the id of the uploaded file of this name; empty when it is not among the newest."""
        ...

    def delete_file(self, file_id: str) -> None:
        """Delete an uploaded or a result file: no text stays with the provider for longer than it must."""
        ...

    def close(self) -> None: ...
