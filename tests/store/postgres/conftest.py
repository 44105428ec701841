"""A database with the schema, and tenants in it that hold a few notes."""

from __future__ import annotations

from importlib.util import find_spec
from uuid import uuid4

import pytest

from tests.postgres_server import PostgresServer, shared_database, shared_server

collect_ignore_glob = [] if find_spec("psycopg") and find_spec("psycopg_pool") else ["test_*.py"]


@pytest.fixture
def server() -> PostgresServer:
    """The server that tests share."""
    return shared_server()


@pytest.fixture
def url(server: PostgresServer) -> str:
    """The database that tests share, each with tenants of its own."""
    return shared_database()


@pytest.fixture
def name() -> str:
    """A name that no other test uses, for a tenant, a role or a database."""
    return f"t{uuid4().hex[:12]}"
