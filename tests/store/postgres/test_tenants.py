"""Tenants of one database: what one holds is not there for another, whatever a connection or a role tries."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest

from notewell import IndexReadOnlyError, Memory, SettingsError, StoreError, TenantClaimedError
from notewell.store.postgres import open_store
from notewell.store.postgres.schema import TENANT_TABLES
from notewell.testing.samples import IDENTITY, chunks_of, document, terms, vectors_of
from notewell.types import EVERYTHING

pytestmark = pytest.mark.slow


def put(store, *texts):
    store.set_embedder(IDENTITY, "bits")
    chunks = chunks_of(*texts)
    store.put_document(document(), chunks, vectors_of(chunks))


def found(store, word):
    """Return the texts of the chunks that hold a word."""
    with store.reading() as snapshot:
        matches = snapshot.keyword_matches(terms(word), limit=9, scope=EVERYTHING)
        return [chunk.text for chunk in snapshot.chunks([match.chunk_id for match in matches]).values()]


@pytest.fixture
def two(url, name):
    """The names of two tenants of one database, each with a note."""
    for tenant in ("a", "b"):
        store = open_store(url, f"{name}-{tenant}")
        put(store, f"secret of {tenant}")
        store.close()
    return f"{name}-a", f"{name}-b"


@pytest.fixture
def bound(server, url, name, two):
    """The URL of a role that is bound to the first of the two tenants."""
    server.execute(f"CREATE ROLE {name} LOGIN")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("SELECT notewell.bind_role(%s, %s)", (name, two[0]))
    yield server.url("memory", name)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("DELETE FROM notewell.role_tenants WHERE role = %s", (name,))


def number_of(server, tenant):
    ((number,),) = server.execute("SELECT id FROM notewell.tenants WHERE name = %s", tenant, database="memory")
    return number


def test_one_tenant_finds_nothing_of_another(url, two):
    one, other = open_store(url, two[0]), open_store(url, two[1])
    assert found(one, "secret") == ["secret of a"]
    assert found(other, "secret") == ["secret of b"]
    one.remove_documents("memory", ["memory/a.md"])
    assert found(other, "secret") == ["secret of b"]
    one.close()
    other.close()


def test_a_pooled_connection_carries_no_tenant_over(url, two):
    store = open_store(url, two[0])
    with store.reading() as snapshot:
        backend = snapshot._db.value("SELECT pg_backend_pid()")
        assert snapshot._db.value("SELECT count(*) FROM notewell.chunks") == 1
    connections = store._tenant.connections
    with connections.transaction("BEGIN") as db:
        assert db.value("SELECT pg_backend_pid()") == backend  # the very connection that was used before
        assert db.value("SELECT nullif(current_setting('notewell.tenant', true), '')") is None
        for table in TENANT_TABLES:
            assert db.value(f"SELECT count(*) FROM notewell.{table}") == 0, table
        assert db.value("SELECT count(*) FROM notewell.tenants") == 0
    store.close()


def test_without_a_tenant_nothing_can_be_written(url, two, server):
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("INSERT INTO notewell.meta VALUES (%s, 1, 'x', 'y')", (number_of(server, two[0]),))


def test_a_bound_role_uses_its_own_tenant(bound, two):
    store = open_store(bound, two[0])
    put(store, "secret of a", "more of a")
    assert found(store, "more") == ["more of a"]
    assert store.verify() == []
    store.close()


@pytest.mark.parametrize("how", ["in the transaction", "for the session", "as it connects"])
def test_a_bound_role_sees_nothing_of_another_tenant_whatever_it_sets(bound, two, server, name, how):
    other = number_of(server, two[1])
    options = f"-c notewell.tenant={other}" if how == "as it connects" else ""
    with psycopg.connect(bound, autocommit=how == "for the session", options=options) as connection:
        if how != "as it connects":
            connection.execute("SELECT set_config('notewell.tenant', %s, %s)", (str(other), how != "for the session"))
        connection.execute("SELECT set_config('notewell.tenant_name', %s, false)", (two[1],))
        assert connection.execute("SELECT current_setting('notewell.tenant')").fetchone() == (str(other),)
        for table in (*TENANT_TABLES, "tenants"):
            assert connection.execute(f"SELECT count(*) FROM notewell.{table}").fetchone() == (0,), table
        assert connection.execute("DELETE FROM notewell.chunks").rowcount == 0
        assert connection.execute("UPDATE notewell.tenants SET generation = NULL").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO notewell.meta VALUES (%s, 1, 'x', 'y')", (other,))


def test_a_bound_role_cannot_free_itself(bound, two, name):
    for statement in (
        f"INSERT INTO notewell.role_tenants SELECT '{name}', 1",
        "DELETE FROM notewell.role_tenants",
        "ALTER TABLE notewell.chunks DISABLE ROW LEVEL SECURITY",
        "DROP POLICY bound_roles ON notewell.chunks",
        f"SELECT notewell.bind_role('{name}', '{two[1]}')",
        f"SELECT notewell.drop_tenant('{two[1]}')",
        "SET row_security = off; SELECT * FROM notewell.chunks",
        "INSERT INTO notewell.tenants (name, agent, workspace) VALUES ('mine', 'main', 'me')",
    ):
        with psycopg.connect(bound, autocommit=True) as connection, pytest.raises(psycopg.Error):
            connection.execute(statement)


def test_a_bound_role_stays_bound_as_another_role(bound, two, server, name, url):
    server.execute(f"CREATE ROLE {name}_group")
    server.execute(f"GRANT {name}_group TO {name}")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("SELECT notewell.bind_role(%s, %s)", (f"{name}_group", two[1]))
        owner.execute("DELETE FROM notewell.role_tenants WHERE role = %s", (f"{name}_group",))
    with psycopg.connect(bound, autocommit=True) as connection:
        connection.execute(f"SET ROLE {name}_group")
        connection.execute("SELECT set_config('notewell.tenant', %s, false)", (str(number_of(server, two[1])),))
        assert connection.execute("SELECT count(*) FROM notewell.chunks").fetchone() == (0,)


def test_a_memory_of_a_role_that_is_bound_elsewhere_says_so(bound, two, workspace):
    with Memory.open(workspace, provider="none", store__url=bound, store__tenant=two[1]) as memory:
        with pytest.raises(StoreError) as caught:
            memory.index()
        assert "bind_role" in caught.value.hint


def test_indexes_are_used_under_row_level_security(url, two, server):
    """GIN would not be; a B-tree on numbers and texts is."""
    number = number_of(server, two[0])
    store = open_store(url, two[0])
    put(store, *(f"word{n} of many" for n in range(600)))
    for n in range(60):  # of one document among those of many tenants, the server looks at all that the tenant has
        store.put_document(document(f"memory/n{n}.md"), chunks_of("one"), {})
    store.close()
    server.execute("ANALYZE notewell.chunks, notewell.postings, notewell.documents", database="memory")
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL enable_seqscan = off")
        connection.execute("SELECT set_config('notewell.tenant', %s, true)", (str(number),))
        for statement in (
            "SELECT data FROM notewell.postings WHERE tenant = %s AND generation = 1 AND term = ANY(ARRAY['a', 'b'])",
            "SELECT term FROM notewell.postings WHERE tenant = %s AND generation = 1 AND term >= 'a' AND term < 'b'",
            "SELECT text FROM notewell.chunks WHERE tenant = %s AND generation = 1 AND id = ANY(ARRAY[1, 2])",
            "SELECT id FROM notewell.documents WHERE tenant = %s AND generation = 1 AND source = 'a' AND path = 'b'",
        ):
            plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {statement}", (number,)))
            conditions = [line for line in plan.split("\n") if "Index Cond" in line]
            wanted = statement.rpartition("generation = 1 AND ")[2].split()[0]
            assert any(wanted in line for line in conditions), plan


# --- workspaces and their tenants ------------------------------------------------------------------


def test_a_workspace_keeps_one_id_and_it_is_no_path(workspace, url):
    with Memory.open(workspace, provider="none", store__url=url) as memory:
        assert memory.search("printer").hits
    kept = (workspace / ".notewell" / "workspace-id").read_text().strip()
    assert len(kept) == 32
    moved = workspace.rename(workspace.with_name("moved"))
    with Memory.open(moved, provider="none", store__url=url) as memory:
        assert memory.search("printer", sync=False).hits
        assert kept in memory.status().db_path
    assert (moved / ".notewell" / "workspace-id").read_text().strip() == kept


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(getattr(os, "mkfifo", None), "not a regular file", id="a pipe"),
        pytest.param(Path.mkdir, "Is a directory", id="a folder"),
        pytest.param(lambda file: file.write_bytes(b"\xff\xfe\0"), "holds no id", id="bytes that are no text"),
        pytest.param(lambda file: file.write_text("x' OR '1'='1"), "holds no id", id="SQL"),
        pytest.param(lambda file: (file.touch(), os.truncate(file, 10**12)), "holds no id", id="a terabyte"),
        pytest.param(lambda file: file.symlink_to("/dev/zero"), "not a regular file", id="a device"),
    ],
)
def test_a_file_that_holds_no_id_is_an_error_at_once(workspace, url, make, message):
    file = workspace / ".notewell" / "workspace-id"
    file.parent.mkdir()
    make(file)
    with Memory.open(workspace, provider="none", store__url=url) as memory, pytest.raises(StoreError, match=message):
        memory.index()


def test_two_workspaces_cannot_have_one_tenant(workspace, example, url, name):
    with Memory.open(workspace, provider="none", store__url=url, store__tenant=name) as memory:
        memory.index()
        with Memory.open(example, provider="none", store__url=url, store__tenant=name) as other:
            with pytest.raises(TenantClaimedError, match="holds the notes of another workspace"):
                other.index()
            answer = other.search("printer")
            assert any("another workspace" in note for note in answer.notes)
        assert memory.verify().findings == ()
    # The same workspace on another machine brings its id along.
    (example / ".notewell").mkdir(exist_ok=True)
    (example / ".notewell" / "workspace-id").write_bytes((workspace / ".notewell" / "workspace-id").read_bytes())
    with Memory.open(example, provider="none", store__url=url, store__tenant=name) as copied:
        assert copied.index().added


def test_agents_of_one_workspace_are_apart(workspace, url):
    for agent in ("main", "other"):
        with Memory.open(workspace, agent=agent, provider="none", store__url=url) as memory:
            assert memory.index().added == 7
    (workspace / "memory" / "network.md").unlink()
    with Memory.open(workspace, provider="none", store__url=url) as memory:
        assert memory.index().removed == 1
    with Memory.open(workspace, agent="other", provider="none", store__url=url) as memory:
        assert memory.status().files == 7


# --- a machine that does not hold the notes --------------------------------------------------------


@pytest.fixture
def followed(workspace, url, name):
    """The overrides of a memory that follows an indexed one."""
    with Memory.open(workspace, provider="hashing", store__url=url, store__tenant=name) as memory:
        memory.index()
    return {"provider": "hashing", "store__url": url, "store__tenant": name, "store__follow": True}


def test_a_follower_searches_and_reads_from_the_database(workspace, followed, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Memory.open(elsewhere, **followed) as memory:
        answer = memory.search("printer address")
        assert answer.hits[0].path == "memory/network.md"
        assert answer.notes == ()
        assert not answer.index.stale
        assert memory.get("memory/network.md").text == (workspace / "memory/network.md").read_text().rstrip("\n")
        assert memory.get("memory/network.md", first_line=5, lines=1).text.startswith("The guest network")
        assert "Dana Whitfield" in memory.session_context().text
        assert "memory/中文.md" in memory.files()
        assert not memory.status().stale
        assert all(check.ok for check in memory.doctor())
        group = memory.search("Dana", chat="group")
        assert group.hits == ()
    assert list(elsewhere.rglob("*")) == []


def test_a_follower_needs_no_right_to_write(followed, tmp_path, server, url, name):
    server.execute(f"CREATE ROLE {name} LOGIN")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("SELECT notewell.bind_role(%s, %s, read_only => true)", (name, name))
    reader = server.url("memory", name)
    with Memory.open(tmp_path, **{**followed, "store__url": reader}) as memory:
        assert memory.search("printer address").hits
        assert memory.get("memory/network.md").text
        assert all(check.ok for check in memory.doctor())
    with psycopg.connect(reader) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("DELETE FROM notewell.chunks")
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("DELETE FROM notewell.role_tenants WHERE role = %s", (name,))


def test_a_follower_sees_what_is_indexed_later(workspace, followed, tmp_path):
    with Memory.open(tmp_path, **followed) as memory:
        assert memory.search("zanzibar").hits == ()
        (workspace / "memory" / "new.md").write_text("The zanzibar shipment is late.\n")
        settings = {key: value for key, value in followed.items() if key != "store__follow"}
        with Memory.open(workspace, **settings) as writer:
            writer.index()
        assert [hit.path for hit in memory.search("zanzibar").hits] == ["memory/new.md"]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda memory: memory.index(), id="index"),
        pytest.param(lambda memory: memory.index(force=True), id="rebuild"),
        pytest.param(lambda memory: memory.sync(), id="sync"),
        pytest.param(lambda memory: memory.remember("tea at five"), id="remember"),
        pytest.param(lambda memory: memory.forget(match="printer"), id="forget"),
        pytest.param(lambda memory: memory.doctor(fix=True), id="repair"),
        pytest.param(lambda memory: memory.watch(), id="watch"),
        pytest.param(lambda memory: memory.conversations, id="conversations"),
        pytest.param(lambda memory: memory.cache.clear(), id="clear the cache"),
    ],
)
def test_a_follower_refuses_writes_with_the_reason(followed, tmp_path, write):
    with Memory.open(tmp_path, **followed) as memory:
        before = memory.status().files
        with pytest.raises(IndexReadOnlyError, match="follow"):
            write(memory)
        memory.begin_session()
        memory.search("printer", sync=True)
        assert memory.wait_until_synced(10)
        assert memory.status().files == before == 7


def test_a_follower_must_name_the_tenant(tmp_path, url):
    with pytest.raises(SettingsError, match=r"needs store\.tenant"):
        Memory.open(tmp_path, store__url=url, store__follow=True)
    with pytest.raises(SettingsError, match=r"need store\.url"):
        Memory.open(tmp_path, store__follow=True, store__tenant="x")


def test_a_tenant_that_is_not_there_is_an_empty_memory(tmp_path, url, name):
    with Memory.open(tmp_path, provider="none", store__url=url, store__follow=True, store__tenant=name) as memory:
        answer = memory.search("printer")
        assert answer.hits == ()
        assert any("nothing is indexed yet" in note for note in answer.notes)
