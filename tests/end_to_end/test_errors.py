"""Every error of the tree: how a user comes by it, and what it then says."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import apsw
import pytest

from notewell import ConversationStore, IndexMismatchError, Memory, RerankerError, Settings, StoreError, errors
from notewell.embedding.hashing import HashingEmbedder
from notewell.memory.note_files import notes_lock
from notewell.search.rerankers import open_reranker
from notewell.settings import QuerySettings, RerankSettings
from notewell.store.state_folder import StateFolder
from tests.cli.conftest import Outcome
from tests.end_to_end.processes.folders import as_plain_user, small_disk, with_mode
from tests.end_to_end.processes.plug_in import install
from tests.postgres_server import free_port, shared_database


@dataclass
class World:
    """What a provocation may use."""

    notewell: Callable[..., Outcome]
    workspace: object
    tmp_path: object
    monkeypatch: pytest.MonkeyPatch


@dataclass(frozen=True)
class Provocation:
    """How an error is reached, its exit code, and patterns of its message and hint."""

    provoke: Callable[[World], Outcome]
    code: int
    message: str
    hint: str
    beside: bool = False  # told beside an answer that is still given, not in place of it


def base_error(world):
    return world.notewell("cache", "stats", "-w", world.workspace, "--set", "cache.enabled=false", "--json")


def settings_error(world):
    return world.notewell("search", "x", "-w", world.workspace, "--set", "query.max_result=3", "--json")


def memory_disabled(world):
    return world.notewell("search", "x", "-w", world.workspace, "--set", "enabled=false", "--json")


def workspace_error(world):
    return world.notewell("status", "-w", world.tmp_path / "nowhere", "--json")


def workspace_not_found(world):
    empty = world.tmp_path / "empty"
    empty.mkdir()
    world.monkeypatch.chdir(empty)
    done = world.notewell("status", "--json")
    if done.code == 0:
        pytest.skip("the folder for temporary files lies inside a workspace")
    return done


def path_refused(world):
    return world.notewell("get", "../secret.md", "-w", world.workspace, "--json")


def note_not_found(world):
    return world.notewell("get", "memory/none.md", "-w", world.workspace, "--json")


def entry_not_found(world):
    return world.notewell("history", "zzzz", "-w", world.workspace, "--json")


def nothing_in_the_trash(world):
    return world.notewell("undo", "-w", world.workspace, "--json")


def note_unreadable(world):
    with with_mode(0, world.workspace / "MEMORY.md"):
        done = as_plain_user("get", "MEMORY.md", "-w", world.workspace, "--json")
    return Outcome(done.returncode, done.stdout, done.stderr)


def query_error(world):
    return world.notewell("search", "x", "--limit", "0", "-w", world.workspace, "--json")


def plugged(world, name, **code):
    world.monkeypatch.syspath_prepend(install(world.tmp_path, name, **code))
    return world.notewell("index", "-w", world.workspace, "--set", f"provider={name}", "--json")


def embedder_error(world):
    return plugged(world, "hangsup", before="raise EmbedderError('the provider hung up', hint='try it later')")


def embedder_unavailable(world):
    return world.notewell("index", "-w", world.workspace, "--set", "provider=nonesuch", "--json")


def cost_limit(world):
    dear = 'cost.prices={"openai/text-embedding-3-small": "1000000"}'
    options = ("--set", "provider=openai", "--set", "remote.api_key=never-sent", "--set", dear)
    return world.notewell("index", "-w", world.workspace, *options, "--json")


def provider_error(world):
    pytest.importorskip("httpx", reason="the extra `remote` is not installed")
    there = "remote.base_url=http://127.0.0.1:9"
    return world.notewell("index", "-w", world.workspace, "--set", "provider=ollama", "--set", there, "--json")


def bad_vector(world):
    return plugged(world, "poisoned", before="raise BadVectorError('a vector is not a number')")


def index_path(world):
    world.notewell("index", "-w", world.workspace)
    with Memory.open(world.workspace, provider="none") as memory:
        return memory._components.folder.current()


def index_too_new(world):
    database = apsw.Connection(str(index_path(world)))
    database.execute("PRAGMA user_version = 999")
    database.close()
    return world.notewell("status", "-w", world.workspace, "--json")


def index_corrupt(world):
    path = index_path(world)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(b"not a database " * 1000)
    return world.notewell("status", "-w", world.workspace, "--json")


def index_read_only(world):
    with with_mode(0o555, world.workspace):
        done = as_plain_user("index", "-w", world.workspace, "--json")
    return Outcome(done.returncode, done.stdout, done.stderr)


def index_foreign(world):
    shared = ("--set", f"store.path={world.tmp_path / 'shared'}")
    (world.tmp_path / "other" / "memory").mkdir(parents=True)
    world.notewell("index", "-w", world.workspace, *shared)
    return world.notewell("search", "x", "-w", world.tmp_path / "other", *shared, "--no-sync", "--json")


def index_busy(world):
    world.notewell("index", "-w", world.workspace)
    with Memory.open(world.workspace, provider="none") as memory:
        folder = StateFolder(memory._components.folder.path)
    world.monkeypatch.setattr("notewell.indexing.sync.LOCK_WAIT_S", 0.05)
    with folder.write_lock(0):
        return world.notewell("index", "-w", world.workspace, "--json")


def disk_full(world):
    with small_disk(world.tmp_path / "small", 64) as disk:
        return world.notewell("index", "-w", world.workspace, "--set", f"store.path={disk}", "--json")


def sessions_of(world):
    with Memory.open(world.workspace, provider="none") as memory:
        memory.conversations.create("chat-1")
        memory.conversations.append("chat-1", {"role": "user", "content": "hello"})
        return memory.conversations


def sessions_call(world, *words):
    return world.notewell("sessions", *words, "-w", world.workspace, "--json")


def conversation_error(world):
    folder = world.workspace / ".notewell" / "main"
    folder.mkdir(parents=True)
    (folder / "sessions").write_text("in the way", encoding="utf-8")
    return sessions_call(world, "delete", "chat-1", "--yes")


def session_not_found(world):
    return sessions_call(world, "show", "nobody")


def session_exists(world):
    path = world.tmp_path / "chat-1.jsonl"
    sessions_of(world)
    path.write_text('{"role": "user", "content": "another conversation"}\n', encoding="utf-8")
    return sessions_call(world, "import", path)


def session_busy(world):
    store = sessions_of(world)
    world.monkeypatch.setitem(ConversationStore.__init__.__kwdefaults__, "lock_timeout_s", 0.05)
    with store._files.locked("chat-1"):
        return sessions_call(world, "archive", "chat-1")


def session_damaged(world):
    sessions_of(world).path_of("chat-1").write_text("{messages: [", encoding="utf-8")
    return sessions_call(world, "show", "chat-1")


def session_too_new(world):
    sessions_of(world).path_of("chat-1").write_text("{version: 99, messages: []}", encoding="utf-8")
    return sessions_call(world, "show", "chat-1")


def session_input(world):
    return sessions_call(world, "show", "../chat-1")


def store_unavailable(world):
    pytest.importorskip("psycopg")
    from notewell.store.postgres import connection

    world.monkeypatch.setattr(connection, "REACH_LIMIT_S", 0.3)
    url = f"postgresql://agent:sesame@127.0.0.1:{free_port()}/memory"
    done = world.notewell("search", "tea", "-w", world.workspace, "--set", f"store.url={url}", "--json")
    assert "sesame" not in done.out + done.err
    return done


def tenant_claimed(world):
    pytest.importorskip("psycopg")
    world.monkeypatch.setenv("NOTEWELL_STORE__URL", shared_database())
    tenant = ("--set", f"store.tenant=claimed-{world.tmp_path.name}")
    assert world.notewell("index", "-w", world.workspace, *tenant).code == 0
    (world.tmp_path / "other" / "memory").mkdir(parents=True)
    return world.notewell("index", "-w", world.tmp_path / "other", *tenant, "--json")


def notes_busy(world):
    world.monkeypatch.setitem(notes_lock.__wrapped__.__kwdefaults__, "timeout_s", 0.05)
    with notes_lock(world.workspace):
        return world.notewell("remember", "something new", "-w", world.workspace, "--json")


def remember_error(world):
    return world.notewell("remember", " ", "-w", world.workspace, "--json")


# Where a class is missing here, the command cannot reach it: see the tests named after those.
PROVOCATIONS = {
    errors.NotewellError: Provocation(base_error, 1, "the cache is turned off", "cache.enabled = true"),
    errors.SettingsError: Provocation(settings_error, 1, "query.max_result", "max_results"),
    errors.MemoryDisabledError: Provocation(memory_disabled, 1, "memory is turned off", "enabled = true"),
    errors.WorkspaceError: Provocation(workspace_error, 1, "there is no folder .*nowhere", "notewell init"),
    errors.WorkspaceNotFoundError: Provocation(workspace_not_found, 1, "no workspace here", "`notewell init`"),
    errors.PathRefusedError: Provocation(path_refused, 1, r"not a memory file: '\.\./secret\.md'", "MEMORY.md"),
    errors.NoteNotFoundError: Provocation(
        note_not_found, 1, "no such note: 'memory/none.md'", "search for its content"
    ),
    errors.EntryNotFoundError: Provocation(entry_not_found, 1, "no remembered entry: 'zzzz'", "`notewell list`"),
    errors.TrashError: Provocation(nothing_in_the_trash, 1, "there is nothing to restore", "kept for 30 days"),
    errors.NoteUnreadableError: Provocation(
        note_unreadable, 1, "cannot read 'MEMORY.md'", "the file and its permissions"
    ),
    errors.NotesBusyError: Provocation(notes_busy, 1, "another process is writing notes", "try again"),
    errors.RememberError: Provocation(remember_error, 2, "nothing to remember", "say what to remember"),
    errors.QueryError: Provocation(query_error, 2, "at least 1, got 0", "1 or more results"),
    errors.EmbedderError: Provocation(embedder_error, 1, "the provider hung up", "try it later", beside=True),
    errors.EmbedderUnavailableError: Provocation(
        embedder_unavailable,
        1,
        "there is no embedding provider 'nonesuch'",
        "set provider to one of them",
        beside=True,
    ),
    errors.ProviderError: Provocation(
        provider_error, 1, "Ollama cannot be reached at http://127.0.0.1:9", "ollama serve", beside=True
    ),
    errors.BadVectorError: Provocation(bad_vector, 0, "a vector is not a number", "", beside=True),
    errors.CostLimitError: Provocation(
        cost_limit, 1, r"embedding would cost about \$[\d.]+, more than cost.confirm_above_usd", "index --yes"
    ),
    errors.ConversationError: Provocation(conversation_error, 1, "a file is in the way", "move that file away"),
    errors.SessionNotFoundError: Provocation(session_not_found, 1, "no such session: 'nobody'", "sessions list"),
    errors.SessionExistsError: Provocation(
        session_exists, 1, "session 'chat-1' already exists", "append to it, or choose another id"
    ),
    errors.SessionBusyError: Provocation(session_busy, 1, "another process has been writing session", "try again"),
    errors.SessionDamagedError: Provocation(
        session_damaged, 1, "the file of session 'chat-1' cannot be read", "notewell sessions repair chat-1"
    ),
    errors.SessionTooNewError: Provocation(session_too_new, 1, "written by a newer release", "upgrade notewell"),
    errors.SessionInputError: Provocation(session_input, 1, r"'\.\./chat-1' is not a session id", "use 1 to 128"),
    errors.IndexTooNewError: Provocation(index_too_new, 3, "written by a newer release", "upgrade notewell"),
    errors.IndexCorruptError: Provocation(index_corrupt, 3, "not a database", "notewell index --force"),
    errors.IndexReadOnlyError: Provocation(index_read_only, 1, "cannot write to", "set store.path"),
    errors.IndexForeignError: Provocation(
        index_foreign, 1, "belongs to the workspace", r"write \{workspace\} into store.path"
    ),
    errors.IndexBusyError: Provocation(index_busy, 1, "another process is indexing", "try again"),
    errors.StoreUnavailableError: Provocation(
        store_unavailable, 1, r"cannot reach postgresql://agent@127\.0\.0\.1:\d+/memory", "check that the server runs"
    ),
    errors.TenantClaimedError: Provocation(
        tenant_claimed, 1, "holds the notes of another workspace", "choose another store.tenant"
    ),
    errors.DiskFullError: Provocation(disk_full, 1, "full|No space left", "free some space"),
}
BY_MEMORY_ONLY = {errors.BackendError, errors.IndexMismatchError, errors.RerankerError, errors.StoreError}


def kinds(error):
    """Return the name of the class for programs, and those of the classes below it that other modules define."""
    inner = [child for child in error.__subclasses__() if child.__module__ != "notewell.errors"]
    return {each.kind.fget(each.__new__(each)) for each in (error, *inner)}


def tree(top):
    return {top}.union(*(tree(child) for child in top.__subclasses__() if child.__module__ == "notewell.errors"))


def test_every_error_of_the_tree_is_provoked():
    assert set(PROVOCATIONS) | BY_MEMORY_ONLY == tree(errors.NotewellError)


PROCESSES = {errors.IndexReadOnlyError, errors.NoteUnreadableError, errors.TenantClaimedError}  # they start one


@pytest.mark.parametrize(
    "error",
    [pytest.param(each, marks=[pytest.mark.slow] * (each in PROCESSES), id=each.__name__) for each in PROVOCATIONS],
)
def test_an_error_says_what_happened_and_what_to_do(error, notewell, workspace, tmp_path, monkeypatch):
    expected = PROVOCATIONS[error]
    done = expected.provoke(World(notewell, workspace, tmp_path, monkeypatch))
    assert done.code == expected.code, done.err
    said = done.document
    if expected.beside:
        told = " ".join([*said["notes"], *(problem["reason"] for problem in said["problems"])])
        assert re.search(expected.message, told)
        assert re.search(expected.hint, told)
    else:
        assert said["error"]["kind"] in kinds(error)
        assert re.search(expected.message, said["error"]["message"])
        assert re.search(expected.hint, said["error"]["hint"])
        assert expected.code == error.exit_code
    assert re.search(expected.message, done.err)
    assert re.search(expected.hint, done.err)
    assert "Traceback" not in done.err


def test_index_mismatch(workspace):
    """The command rebuilds before it comes to this; a store asked to mix two spaces refuses."""
    other = HashingEmbedder(dimensions=128)
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        with (
            memory._components.index.use() as store,
            pytest.raises(IndexMismatchError, match=r"was built with .*:384, .*:128") as raised,
        ):
            store.set_embedder(other.identity, other.quantization)
    assert "notewell index" in raised.value.hint
    assert raised.value.exit_code == 3


def test_reranker_error():
    """A search goes on without a reranker that cannot run, so nothing but opening one raises it."""
    settings = Settings(query=QuerySettings(rerank=RerankSettings(provider="nonesuch")))
    with pytest.raises(RerankerError, match="there is no reranker 'nonesuch'; available are: cohere, jina") as raised:
        open_reranker(settings)
    assert "query.rerank.provider" in raised.value.hint
    assert (raised.value.kind, raised.value.exit_code) == ("reranker", 1)


def test_store_error(workspace):
    """A store that somebody holds on to after its memory was closed says so, instead of answering from nowhere."""
    with Memory.open(workspace, provider="hashing") as memory:
        memory.index()
        with memory._components.index.use() as store:
            pass
    with pytest.raises(StoreError, match="the store is closed") as raised, store.reading():
        pass
    assert (raised.value.hint, raised.value.exit_code) == ("open the index again", 3)


def test_an_index_of_a_newer_release_can_be_built_anew(notewell, workspace, tmp_path, monkeypatch):
    index_too_new(World(notewell, workspace, tmp_path, monkeypatch))
    assert notewell("index", "-w", workspace).code == 3  # never without being asked
    assert notewell("index", "--force", "-w", workspace).code == 0
    assert notewell("doctor", "-w", workspace).code == 0


@pytest.mark.parametrize("provider", ["hangsup2", "poisoned2"])
def test_after_an_embedder_failed_keyword_search_works(notewell, workspace, tmp_path, monkeypatch, provider):
    raised = "EmbedderError" if provider == "hangsup2" else "BadVectorError"
    world = World(notewell, workspace, tmp_path, monkeypatch)
    plugged(world, provider, before=f"raise {raised}('no')")
    found = notewell("search", "printer", "-w", workspace, "--set", f"provider={provider}", "--json").document
    assert (found["mode"], found["hits"][0]["path"]) == ("keyword", "memory/network.md")
    assert found["notes"]


def test_a_plug_in_that_cannot_run_leaves_keyword_search(notewell, workspace, tmp_path, monkeypatch):
    site = install(tmp_path, "keyless", opening="raise EmbedderUnavailableError('no key', hint='set KEYLESS_KEY')")
    monkeypatch.syspath_prepend(site)
    done = notewell("search", "printer", "-w", workspace, "--set", "provider=keyless", "--json")
    assert done.document["hits"][0]["path"] == "memory/network.md"
    assert done.document["notes"] == ["keyword search only: no key; set KEYLESS_KEY"]
    assert notewell("doctor", "-w", workspace, "--set", "provider=keyless").code == 1


def test_an_interrupt_is_said_in_json_as_well(notewell, workspace, tmp_path, monkeypatch):
    site = install(tmp_path, "stopped", before="raise KeyboardInterrupt")
    monkeypatch.syspath_prepend(site)
    done = notewell("index", "-w", workspace, "--set", "provider=stopped", "--json")
    assert (done.code, done.document["error"]["kind"]) == (130, "stopped")
    assert "what was done so far is kept" in done.document["error"]["message"]
