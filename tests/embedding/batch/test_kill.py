"""kill -9 around every call of a job, in a real process: the next run goes on, and the provider is paid once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .conftest import NOTES, WITH_JOBS

pytestmark = pytest.mark.slow

LIMIT_S = 60  # for a process that should end much sooner
EVERY_STEP = [
    (moment, route)
    for route in ("upload", "create", "poll", "download", "delete_file")
    for moment in ("before", "after")
]
# The step after which a job could be lost or doubled; the others are alike for all providers.
RISKY_STEPS = [("after", "create")]
POINTS = [
    pytest.param(name, moment, route, id=f"{name}, {moment} {route}")
    for name in WITH_JOBS
    for moment, route in (EVERY_STEP if name == "openai" else RISKY_STEPS)
]


def command(harbour, *arguments):
    """Start `notewell index --batch` as a user would."""
    environment = {
        **os.environ,
        "NOTEWELL_CONFIG": os.devnull,
        "NOTEWELL_PROVIDER": harbour.fake.name,
        "NOTEWELL_REMOTE__BASE_URL": harbour.fake.base_url,
        "NOTEWELL_REMOTE__API_KEY": harbour.fake.key,
        "NOTEWELL_REMOTE__BATCH__POLL_INTERVAL_MS": "100",
    }
    call = [sys.executable, "-m", "notewell", "index", "--batch", "-w", str(harbour.workspace), *arguments]
    return subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("harbour", "moment", "route"), POINTS, indirect=["harbour"])
def test_a_killed_run_is_gone_on_with(harbour, moment, route):
    child = None
    harbour.fake.on_request = lambda *reached: child.kill() if reached == (moment, route) else None
    child = command(harbour)
    output = child.communicate(timeout=LIMIT_S)
    assert child.returncode not in {0, 1}, output
    harbour.fake.on_request = lambda *reached: None

    memory = harbour.open()
    report = memory.index(batch=True)
    assert (report.pending, report.jobs, report.problems) == (0, 0, ())
    assert (harbour.jobs, harbour.texts_embedded_at_once()) == (1, 0)
    assert (harbour.ledger, harbour.fake.book.files) == ([], {})
    harbour.check_complete(memory)


@pytest.mark.parametrize("harbour", ["openai"], indirect=True)
def test_the_command_leaves_a_job_and_a_later_one_fetches_it(harbour):
    left = command(harbour, "--no-wait")
    output, _ = left.communicate(timeout=LIMIT_S)
    assert (left.returncode, f"{NOTES} pending" in output) == (0, True)
    fetched = command(harbour)
    output, _ = fetched.communicate(timeout=LIMIT_S)
    assert (fetched.returncode, f"{NOTES} embedded" in output) == (0, True)
    assert (harbour.jobs, harbour.texts_embedded_at_once()) == (1, 0)
