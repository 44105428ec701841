"""What can be wrong with a database, as a user of the command or of `Memory` meets it: a clear error, nothing lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from urllib.parse import quote

import psycopg
import pytest

from notewell import IndexReadOnlyError, IndexTooNewError, Memory, SettingsError, StoreError
from notewell.store.postgres import open_store
from notewell.store.postgres.connection import Connections
from notewell.store.postgres.schema import MIGRATIONS, Server, _migrate, _missing
from notewell.store.postgres.server_errors import Secrets
from notewell.testing.samples import chunks_of, document
from tests.cli.conftest import notewell  # noqa: F401
from tests.postgres_server import shared_server

pytestmark = pytest.mark.slow


def refused(notewell, workspace, url, *words):  # noqa: F811
    """Return the error of a command with this database, as programs get it."""
    done = notewell(*(words or ("index",)), "-w", workspace, "--set", f"store.url={url}", "--json")
    assert done.code in {1, 3}, done.out
    assert "Traceback" not in done.err
    return done.document["error"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("mysql://db/memory", "store.url", id="another database"),
        pytest.param("postgresql://host:port/memory", "cannot|port", id="a port that is no number"),
        pytest.param("postgresql://127.0.0.1/x?nonsense=1", "nonsense", id="an option that is none"),
        pytest.param("postgresql://no-such-host.invalid/memory", "no-such-host", id="a host that is none"),
    ],
)
def test_a_wrong_url(notewell, workspace, url, message):  # noqa: F811
    error = refused(notewell, workspace, url)
    assert any(word in error["message"] for word in message.split("|")), error
    assert error["hint"]


def test_a_wrong_password_is_named_and_not_shown(notewell, workspace, server):  # noqa: F811
    if not server.execute("SELECT 1 FROM pg_roles WHERE rolname = 'locked'"):
        server.execute("CREATE ROLE locked LOGIN PASSWORD 'the right one'")
    for secret in ("open-sesame", "p%40ss%2Fw0rd"):
        error = refused(notewell, workspace, server.url("postgres", "locked", secret))
        assert "password authentication failed" in error["message"]
        assert "password" in error["hint"]
        assert secret not in str(error)
    error = refused(notewell, workspace, server.url("postgres", "locked"))
    assert "no password supplied" in error["message"]


def test_the_password_is_nowhere(notewell, workspace, url, server):  # noqa: F811
    secret = url.replace("keeper@", "keeper:open-sesame@")
    for words in (
        ("index",),
        ("status",),
        ("doctor",),
        ("search", "printer"),
        ("config", "show"),
        ("status", "--json"),
    ):
        done = notewell(*words, "-w", workspace, "--set", f"store.url={secret}")
        assert done.code == 0, done.err
        assert "sesame" not in done.out + done.err
    with Memory.open(workspace, provider="none", store__url=secret) as memory:
        memory.search("printer")
        shown = [memory.settings, memory.status(), memory._components, memory._components.storage.indexes.connections]
        assert "sesame" not in repr(shown) + str(shown)


def test_passwords_in_every_form_are_hidden():
    for url in (
        "postgresql://u:s3same@h/db",
        "postgresql://u:s3%40same@h/db",
        "postgresql://u@h/db?password=s3same",
        "postgresql://u:p@ss:s3same@h/db",
    ):
        secrets = Secrets(url)
        assert "same" not in secrets.shown
        for part in ("s3same", "s3@same", "s3%40same"):
            if part in url or part == "s3@same":
                assert "s3same" not in secrets.hide(f"connection with {url} failed")


@pytest.mark.parametrize("secret", ["p@ss#s3same", "pa/s3same", "pa?s3same", "1@s3same"])
def test_a_password_that_must_be_encoded_is_not_taken_for_a_host(notewell, workspace, server, secret):  # noqa: F811
    error = refused(notewell, workspace, server.url("postgres", "locked", secret))
    assert "must be written as a code" in error["message"]
    assert "%40" in error["hint"]
    assert "s3same" not in str(error)


def test_a_port_before_a_user_in_the_options_is_no_password(server):
    connections = Connections(server.url("memory", "keeper").replace("keeper@", "") + "?user=me@here")
    with pytest.raises(StoreError, match='role "me@here" does not exist'), connections.transaction("BEGIN"):
        pass
    connections.close()


def test_a_database_that_is_not_there(notewell, workspace, server):  # noqa: F811
    error = refused(notewell, workspace, server.url("nowhere", "keeper"))
    assert 'database "nowhere" does not exist' in error["message"]
    assert "CREATE DATABASE" in error["hint"]


def test_what_is_missing_is_said_at_once_with_the_sql_that_fixes_it(notewell, workspace, server, name):  # noqa: F811
    server.execute(f"CREATE ROLE {name} LOGIN")
    server.execute(f"CREATE DATABASE {name}")
    url = server.url(name, name)
    error = refused(notewell, workspace, url)
    assert "pgvector is missing" in error["message"]
    assert "may not create a schema" in error["message"]
    sql = error["hint"].partition(": ")[2]
    for statement in filter(None, sql.split("; ")):
        server.execute(statement.rstrip(";"), database=name)
    assert notewell("index", "-w", workspace, "--set", f"store.url={url}").code == 0


def test_servers_that_are_too_old():
    row = [150004, "0.7.4", "public", None, False, False, "db", "me", True, False, 0, False, None, None]
    found = _missing(Server(row))
    assert [fix for _, fix in found] == ["upgrade it.", "ALTER EXTENSION vector UPDATE;"]


def test_a_role_without_rights_is_told_what_to_ask_for(notewell, workspace, server, url, name):  # noqa: F811
    open_store(url, name).close()
    server.execute(f"CREATE ROLE {name} LOGIN")
    error = refused(notewell, workspace, server.url("memory", name))
    assert "may not use the schema notewell" in error["message"]
    assert f"SELECT notewell.bind_role('{name}'" in error["hint"]


def test_the_sql_of_a_hint_holds_for_a_role_of_any_name(server, url, name):
    open_store(url, name).close()
    role = f"{name} o'br\"ien'; SELECT 1; --"
    with psycopg.connect(url, autocommit=True) as owner:
        server.execute(f'CREATE ROLE "{role.replace(chr(34), 2 * chr(34))}" LOGIN')
        with pytest.raises(StoreError, match="may not use") as raised:
            open_store(server.url("memory", quote(role, safe="")), name)
        statement = raised.value.hint.partition(": ")[2].replace("'TENANT'", f"'{name}'")
        assert len(owner.execute(statement).fetchall()) == 1
        bound = owner.execute("SELECT count(*) FROM notewell.role_tenants WHERE role = %s", (role,)).fetchone()
        assert bound == (1,)
        owner.execute("DELETE FROM notewell.role_tenants WHERE role = %s", (role,))


def test_a_schema_of_a_newer_release(workspace, server, name):
    url = server.create_database(name)
    with Memory.open(workspace, provider="none", store__url=url) as memory:
        memory.index()
    server.execute("UPDATE notewell.schema_version SET version = 99", database=name)
    with Memory.open(workspace, provider="none", store__url=url) as memory:
        for call in (memory.index, lambda: memory.search("printer"), memory.status):
            with pytest.raises(IndexTooNewError, match="newer release") as caught:
                call()
            assert "upgrade" in caught.value.hint
    server.execute(f"UPDATE notewell.schema_version SET version = {len(MIGRATIONS)}", database=name)
    with Memory.open(workspace, provider="none", store__url=url) as memory:
        assert memory.search("printer", sync=False).hits


@pytest.fixture
def older(server, name):
    """A database whose tables, and the index in them, were made by the release before."""
    url = server.create_database(name)
    connections = Connections(url)
    _migrate(connections, MIGRATIONS[:1])
    connections.close()
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("SELECT set_config('notewell.tenant', '1', false)")
        owner.execute("INSERT INTO notewell.tenants (name, agent, workspace, generation) VALUES ('t', 'main', 'w', 1)")
        owner.execute(
            "INSERT INTO notewell.generations (tenant, generation, documents, last_document) VALUES (1, 1, 1, 1)"
        )
        owner.execute(
            "INSERT INTO notewell.documents (tenant, generation, id, source, path, size, mtime_ns, ctime_ns, inode,"
            " content_hash, private) VALUES (1, 1, 1, 'memory', 'memory/kept.md', 1, 1, 1, 1, '', 0)"
        )
    return url


def test_an_older_schema_is_upgraded_and_keeps_what_it_holds(older, server, name):
    server.execute(f"CREATE ROLE {name}_bound LOGIN")
    server.execute(f"GRANT USAGE ON SCHEMA notewell TO {name}_bound", database=name)
    server.execute(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA notewell TO {name}_bound", database=name
    )
    server.execute(f"REVOKE UPDATE ON notewell.tenants FROM {name}_bound", database=name)
    server.execute(f"GRANT UPDATE (workspace, generation) ON notewell.tenants TO {name}_bound", database=name)
    server.execute(f"INSERT INTO notewell.role_tenants VALUES ('{name}_bound', 1)", database=name)
    assert server.execute("SELECT version FROM notewell.schema_version", database=name) == [(1,)]
    bound = server.url(name, f"{name}_bound")
    with pytest.raises(StoreError, match="older release") as caught:
        open_store(bound, "t", workspace_id="w")
    assert "owns the schema" in caught.value.hint
    for url in (older, bound):
        store = open_store(url, "t", workspace_id="w")
        with store._tenant.write_lock(5):
            store.put_document(document("memory/new.md"), chunks_of("a new one"), {})
        with store.reading() as snapshot:
            assert sorted(path for _, path in snapshot.documents()) == ["memory/kept.md", "memory/new.md"]
        assert store.verify() == []
        store.close()
    assert server.execute("SELECT version FROM notewell.schema_version", database=name) == [(len(MIGRATIONS),)]


def test_who_only_reads_is_told_of_an_older_schema(older, tmp_path):
    options = {"provider": "none", "store__url": older, "store__follow": True, "store__tenant": "t"}
    with Memory.open(tmp_path, **options) as memory, pytest.raises(StoreError, match="older release"):
        memory.search("anything")


def test_tables_of_somebody_else_are_left_alone(notewell, workspace, server, name):  # noqa: F811
    url = server.create_database(name)
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE SCHEMA notewell")
        owner.execute("CREATE TABLE notewell.chunks (mine text)")
        owner.execute("INSERT INTO notewell.chunks VALUES ('precious')")
        owner.execute("CREATE TABLE public.documents (theirs int)")
    error = refused(notewell, workspace, url)
    assert "tables that are not ours" in error["message"]
    assert "sqlite" not in notewell("doctor", "-w", workspace, "--set", f"store.url={url}").out
    assert server.execute("SELECT * FROM notewell.chunks", database=name) == [("precious",)]
    with psycopg.connect(url, autocommit=True) as owner:  # in other schemas they do not matter
        owner.execute("DROP SCHEMA notewell CASCADE")
    assert notewell("index", "-w", workspace, "--set", f"store.url={url}").code == 0
    assert server.execute("SELECT count(*) FROM public.documents", database=name) == [(0,)]


def test_nul_and_lone_surrogates_in_notes_and_questions(workspace, url):
    (workspace / "memory" / "odd.md").write_bytes(b"# Odd\n\nA kumquat\0 with \xff\xfe and \xed\xa0\x80 inside.\n")
    with Memory.open(workspace, provider="hashing", store__url=url) as memory:
        assert memory.index().problems == ()
        for query in ("kumquat", "kum\0quat kumquat", "\ud800 kumquat", '"\0" kumquat', "\udfff"):
            answer = memory.search(query, min_score=0.1)  # two of the three words of one question are in no note
            assert bool(answer.hits) == ("kumquat" in query), query
        assert memory.verify().findings == ()
    store = open_store(url, str(workspace))
    store.put_document(document(), chunks_of("tea \0 and \ud800 milk"), {})
    assert store.verify() == []
    store.close()


def test_two_processes_create_the_tables_at_once(workspace, server, name):
    url = server.create_database(name)
    script = (
        "import sys; from notewell.store.postgres import open_store;"
        "store = open_store(sys.argv[1], sys.argv[2]); print(store.verify()); store.close()"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", script, url, f"t{n}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for n in range(4)
    ]
    for process in started:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out.strip()) == (0, b"[]"), err.decode()


def test_a_tenant_that_is_dropped_while_it_is_searched(workspace, url, name):
    with Memory.open(workspace, provider="none", store__url=url, store__tenant=name) as memory:
        memory.index()
        with memory._components.index.use() as store, store.reading() as snapshot:
            with psycopg.connect(url, autocommit=True) as owner:
                owner.execute("SELECT notewell.drop_tenant(%s)", (name,))
            assert snapshot.documents()  # a snapshot that is open keeps what it saw
        with pytest.raises(StoreError, match="tenant was dropped") as caught:
            memory.search("printer", sync=False)
        assert caught.value.hint == "run `notewell index`"
        assert "nothing is indexed yet" in " ".join(memory.search("printer", sync=False).notes)
        assert memory.search("printer").hits  # the notes are still here, so the next sync indexes them again


def test_a_follower_whose_tenant_is_dropped(workspace, url, name, tmp_path):
    with Memory.open(workspace, provider="none", store__url=url, store__tenant=name) as memory:
        memory.index()
    options = {"provider": "none", "store__url": url, "store__tenant": name, "store__follow": True}
    with Memory.open(tmp_path, **options) as memory:
        assert memory.search("printer").hits
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("SELECT notewell.drop_tenant(%s)", (name,))
        with pytest.raises(StoreError, match="tenant was dropped"):
            memory.search("printer")
        assert memory.search("printer").hits == ()


def test_a_workspace_file_cannot_name_a_database(workspace, url):
    (workspace / "notewell.toml").write_text(f'[store]\nurl = "{url}"\n')
    with pytest.raises(SettingsError, match=r"may not set store\.url"):
        Memory.open(workspace, provider="none")


def test_threads_share_the_connections(workspace, url):
    problems = []
    with Memory.open(workspace, provider="none", store__url=url) as memory:
        memory.index()

        def search():
            try:
                for _ in range(5):
                    assert memory.search("printer").hits
            except Exception as error:  # noqa: BLE001
                problems.append(error)

        threads = [threading.Thread(target=search) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_connections_of_its_own(url, name):
    store = open_store(url, name)
    store.put_document(document(), chunks_of("one"), {})
    child = os.fork()
    if child == 0:
        try:
            with store.reading() as snapshot:
                os._exit(0 if snapshot.counts().files == 1 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    with store.reading() as snapshot:
        assert snapshot.counts().files == 1
    store.close()


def test_the_same_on_the_oldest_server(workspace):
    old = shared_server(16)
    url = (
        old.create_database("memory")
        if not old.execute("SELECT 1 FROM pg_database WHERE datname = 'memory'")
        else old.url("memory", "keeper")
    )
    with Memory.open(workspace, provider="hashing", store__url=url) as memory:
        assert memory.index().added == 7
        assert memory.search("printer address").hits[0].path == "memory/network.md"
        (workspace / "memory" / "network.md").unlink()
        assert memory.index(force=True).rebuilt
        assert memory.verify().findings == ()
        assert all(check.ok for check in memory.doctor())


def test_a_standby_cannot_be_written(url, name, monkeypatch):
    """A read-only transaction is what a standby gives."""
    connections = Connections(url)
    with connections.transaction("BEGIN READ ONLY") as db, pytest.raises(IndexReadOnlyError) as caught:
        db.rows("CREATE TABLE notewell.x (y int)")
    assert "primary" in caught.value.hint
    connections.close()


def test_the_size_of_an_index_is_said_to_be_an_estimate(notewell, workspace, url):  # noqa: F811
    assert notewell("index", "-w", workspace, "--set", f"store.url={url}").code == 0
    lines = notewell("status", "-w", workspace, "--set", f"store.url={url}").out.splitlines()
    (line,) = [line for line in lines if line.startswith("index ")]
    assert ", about 0." in line
