"""A short case of every soak run of PostgreSQL; `python -m tests.soak postgres` does the long ones."""

from __future__ import annotations

import random

import pytest

from tests.postgres_server import own_server, shared_database
from tests.soak import postgres

pytestmark = pytest.mark.slow


def test_killed_clients_leave_a_whole_index(tmp_path):
    folder = postgres.workspace(tmp_path / "notes")
    assert postgres.kill_clients(folder, shared_database(), 5, random.Random(1)) >= 1


def test_a_killed_server_costs_a_writer_no_error(tmp_path):
    with own_server() as server:
        url = server.create_database("memory")
        assert postgres.kill_servers(postgres.workspace(tmp_path / "notes"), server, url, 1, random.Random(1)) == 1


def test_writers_and_readers_of_many_processes(tmp_path):
    assert postgres.read_and_write(postgres.workspace(tmp_path / "notes"), shared_database(), 4)


@pytest.mark.parametrize("synchronous", [True, False])
def test_a_standby_that_is_promoted_goes_on(tmp_path, synchronous):
    told = postgres.promote(postgres.workspace(tmp_path / "notes"), synchronous=synchronous)
    assert not synchronous or ", 0 lost" in told
