"""Creates, upgrades and checks the tables in PostgreSQL; errors contain the SQL for what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from notewell.errors import IndexTooNewError, StoreError
from notewell.store.postings import POSTING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notewell.store.postgres.connection import Connections, Database
    from notewell.store.postgres.posting_blocks import Unmerged
    from notewell.store.postgres.totals import Totals

LEAST_SERVER = 160000
LEAST_PGVECTOR = (0, 8)
LITERAL, NAME = "'", '"'  # quotation marks of SQL
LOCK_CLASS = 0x6E77656C  # "nwel" in ASCII: the first number of our advisory locks; the second is the tenant
MIGRATION_LOCK = 0  # the number of no tenant
MARK = "tables of notewell"  # the comment on our schema, which identifies it

# Every table has the tenant, in each key and for row-level security. A generation is one index of a tenant. All indexes
# are B-trees, because GIN is not used under row-level security.
FIRST_SCHEMA = """
CREATE TABLE notewell.schema_version (version int NOT NULL);
INSERT INTO notewell.schema_version VALUES (0);
CREATE TABLE notewell.tenants (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, agent text NOT NULL,
  workspace text NOT NULL,  -- the id of the workspace whose notes these are
  generation int,  -- the one that answers
  last_generation int NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (name, agent)
);
CREATE TABLE notewell.role_tenants (
  role text COLLATE "C" NOT NULL,  -- the collation of `current_user`, without which the key would not be used
  tenant int NOT NULL REFERENCES notewell.tenants ON DELETE CASCADE, PRIMARY KEY (role, tenant)
);
CREATE TABLE notewell.generations (
  tenant int NOT NULL, generation int NOT NULL,
  documents int NOT NULL DEFAULT 0, chunks int NOT NULL DEFAULT 0, vectors int NOT NULL DEFAULT 0,
  skipped int NOT NULL DEFAULT 0,  -- chunks that wait for no vector
  terms bigint NOT NULL DEFAULT 0,  -- of all chunks together
  last_document int NOT NULL DEFAULT 0, last_chunk int NOT NULL DEFAULT 0,
  vector_generation bigint NOT NULL DEFAULT 0,  -- grows with every change of vectors; names what readers may cache
  dead_generation bigint NOT NULL DEFAULT 0, dead int NOT NULL DEFAULT 0,  -- removed chunks that postings still hold
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant, generation)
);
CREATE TABLE notewell.meta (
  tenant int NOT NULL, generation int NOT NULL, key text COLLATE "C" NOT NULL, value text NOT NULL,
  PRIMARY KEY (tenant, generation, key)
);
CREATE TABLE notewell.documents (
  tenant int NOT NULL, generation int NOT NULL, id int NOT NULL, source text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL, size bigint NOT NULL, mtime_ns bigint NOT NULL, ctime_ns bigint NOT NULL,
  inode bigint NOT NULL, content_hash text NOT NULL, dated int,  -- proleptic day number; NULL is evergreen
  private smallint NOT NULL,  -- 1: not for groups
  cursor text,  -- of those that grow at their end
  PRIMARY KEY (tenant, generation, id), UNIQUE (tenant, generation, source, path)
);
CREATE TABLE notewell.chunks (
  tenant int NOT NULL, generation int NOT NULL, id int NOT NULL,  -- never reused: readers cache by it
  document int NOT NULL, first_line int NOT NULL, last_line int NOT NULL, turn int NOT NULL, parts int NOT NULL,
  has_vector smallint NOT NULL, importance smallint, context_length int NOT NULL, terms int NOT NULL,
  embedded_hash bytea NOT NULL, entry text, category text, context text NOT NULL, text text NOT NULL,
  PRIMARY KEY (tenant, generation, id)
);
CREATE INDEX chunks_of_document ON notewell.chunks (tenant, generation, document, turn);
CREATE INDEX chunks_by_hash ON notewell.chunks (tenant, generation, embedded_hash);
CREATE INDEX chunks_pending ON notewell.chunks (tenant, generation, id) WHERE has_vector = 0;
CREATE INDEX chunks_by_category ON notewell.chunks (tenant, generation, category) WHERE category IS NOT NULL;
CREATE TABLE notewell.postings (
  tenant int NOT NULL, generation int NOT NULL, term text COLLATE "C" NOT NULL, block int NOT NULL, count int NOT NULL,
  data bytea NOT NULL, positions bytea NOT NULL,
  PRIMARY KEY (tenant, generation, term, block)
);
CREATE INDEX postings_by_block ON notewell.postings (tenant, generation, block);
CREATE TABLE notewell.posting_batches (  -- the chunks whose blocks begin with the same one
  tenant int NOT NULL, generation int NOT NULL, first int NOT NULL, last int NOT NULL, chunks int NOT NULL,
  PRIMARY KEY (tenant, generation, first)
);
ALTER TABLE notewell.postings ALTER data SET STORAGE EXTERNAL, ALTER positions SET STORAGE EXTERNAL;
CREATE TABLE notewell.dead_chunks (
  tenant int NOT NULL, generation int NOT NULL, block int NOT NULL, ids bytea NOT NULL,  -- 32-bit numbers
  PRIMARY KEY (tenant, generation, block)
);
CREATE TABLE notewell.vectors (
  tenant int NOT NULL, generation int NOT NULL, chunk int NOT NULL, source text COLLATE "C" NOT NULL,
  embedding @VECTOR.halfvec NOT NULL,
  PRIMARY KEY (tenant, generation, chunk)
);
CREATE TABLE notewell.vector_codecs (
  tenant int NOT NULL, generation int NOT NULL, name text NOT NULL, mean bytea NOT NULL, fitted_on int NOT NULL,
  last_chunk int NOT NULL,  -- vectors of later chunks are in no segment yet
  PRIMARY KEY (tenant, generation)
);
CREATE TABLE notewell.vector_segments (
  tenant int NOT NULL, generation int NOT NULL, segment int NOT NULL, version bigint NOT NULL, used int NOT NULL,
  ids bytea NOT NULL, sources bytea NOT NULL, codes bytea NOT NULL,
  PRIMARY KEY (tenant, generation, segment)
);
ALTER TABLE notewell.vector_segments ALTER ids SET STORAGE EXTERNAL, ALTER sources SET STORAGE EXTERNAL,
  ALTER codes SET STORAGE EXTERNAL;
CREATE TABLE notewell.cache_spaces (
  tenant int NOT NULL, id int GENERATED ALWAYS AS IDENTITY, provider text NOT NULL, model text NOT NULL,
  key text NOT NULL, dimensions int NOT NULL, PRIMARY KEY (tenant, id),
  UNIQUE (tenant, provider, model, key, dimensions)
);
CREATE TABLE notewell.cache_entries (
  tenant int NOT NULL, space int NOT NULL, text_hash bytea NOT NULL, vector bytea NOT NULL,  -- float16
  used_at bigint NOT NULL,  -- seconds since 1970
  PRIMARY KEY (tenant, space, text_hash)
);
ALTER TABLE notewell.cache_entries ALTER vector SET STORAGE EXTERNAL;
CREATE INDEX cache_entries_by_use ON notewell.cache_entries (tenant, used_at);
CREATE TABLE notewell.cache_counters (
  tenant int NOT NULL, name text NOT NULL, value bigint NOT NULL, PRIMARY KEY (tenant, name)
);
"""
# Adds bundles of recent chunks, and writer numbers.
SECOND_SCHEMA = """
ALTER TABLE notewell.posting_batches ADD version bigint NOT NULL DEFAULT 0, ADD packed bytea,
  ALTER packed SET STORAGE EXTERNAL;
-- Only the primary key begins with the tenant: while the server has not counted the rows of a tenant, it takes them for
-- one, and any index that begins with it for as good as any other. It would read all that a tenant holds to find a row.
DROP INDEX notewell.postings_by_block, notewell.chunks_of_document, notewell.chunks_by_hash,
  notewell.cache_entries_by_use;
ALTER TABLE notewell.documents DROP CONSTRAINT documents_tenant_generation_source_path_key,
  ADD UNIQUE (path, source, tenant, generation);
CREATE INDEX postings_by_block ON notewell.postings (block, tenant, generation);
CREATE INDEX chunks_of_document ON notewell.chunks (document, tenant, generation, turn);
CREATE INDEX chunks_by_hash ON notewell.chunks (embedded_hash, tenant, generation);
-- What nobody searches by is not looked at when rows are counted.
ALTER TABLE notewell.chunks ALTER text SET STATISTICS 0, ALTER context SET STATISTICS 0;
ALTER TABLE notewell.postings ALTER data SET STATISTICS 0, ALTER positions SET STATISTICS 0;
ALTER TABLE notewell.vectors ALTER embedding SET STATISTICS 0;
ALTER TABLE notewell.cache_entries ALTER vector SET STATISTICS 0;
ALTER TABLE notewell.generations RENAME dead_generation TO postings_generation;
ALTER TABLE notewell.tenants ADD writer bigint NOT NULL DEFAULT 0;
DO $$
DECLARE bound text;
BEGIN
  FOR bound IN SELECT DISTINCT role FROM notewell.role_tenants JOIN pg_roles ON rolname = role
    WHERE has_column_privilege(role::name, 'notewell.tenants', 'generation', 'UPDATE')
  LOOP EXECUTE format('GRANT UPDATE (writer) ON notewell.tenants TO %I', bound); END LOOP;
END $$;
"""
TENANT_TABLES = (
    *("generations", "meta", "documents", "chunks", "postings", "posting_batches", "dead_chunks"),
    *("vectors", "vector_codecs", "vector_segments", "cache_spaces", "cache_entries", "cache_counters"),
)
TABLES = frozenset({"schema_version", "tenants", "role_tenants", *TENANT_TABLES})

# Each transaction sets its tenant and sees the rows of that tenant only. As SQL can set any tenant, the second policy
# binds roles to tenants; it is restrictive, so that no other policy can widen it. SET ROLE does not evade it, because
# the session user counts, too.
_BOUND = "SELECT tenant FROM notewell.role_tenants WHERE role IN (current_user, session_user)"
_POLICIES = """
ALTER TABLE notewell.@TABLE ENABLE ROW LEVEL SECURITY;
ALTER TABLE notewell.@TABLE FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON notewell.@TABLE USING (@SET);
CREATE POLICY bound_roles ON notewell.@TABLE AS RESTRICTIVE USING (
  (SELECT NOT EXISTS (@BOUND)) OR @COLUMN IN (@BOUND)
);
"""
_SET_ID = "nullif(current_setting('notewell.tenant', true), '')::int"
_SET_NAME = "name = current_setting('notewell.tenant_name', true)"
# For administrators.
FUNCTIONS = """
CREATE OR REPLACE FUNCTION notewell.bind_role(
  role text, tenant text, agent text DEFAULT 'main', read_only bool DEFAULT false
) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE number int;
BEGIN
  PERFORM set_config('notewell.tenant_name', bind_role.tenant, true);
  SELECT t.id INTO number FROM notewell.tenants t WHERE t.name = bind_role.tenant AND t.agent = bind_role.agent;
  IF number IS NULL THEN
    PERFORM set_config('notewell.tenant', '', true);
    INSERT INTO notewell.tenants (name, agent, workspace) VALUES (bind_role.tenant, bind_role.agent, '')
      RETURNING id INTO number;
  END IF;
  EXECUTE format('GRANT USAGE ON SCHEMA notewell TO %I', bind_role.role);
  EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA notewell TO %I', bind_role.role);
  IF NOT bind_role.read_only THEN
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON @TABLES TO %I', bind_role.role);
    EXECUTE format('GRANT UPDATE (workspace, generation, last_generation, writer) ON notewell.tenants TO %I',
      bind_role.role);
  END IF;
  INSERT INTO notewell.role_tenants VALUES (bind_role.role, number) ON CONFLICT DO NOTHING;
  PERFORM set_config('notewell.tenant_name', '', true);
END $$;
CREATE OR REPLACE FUNCTION notewell.drop_tenant(tenant text, agent text DEFAULT 'main') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE number int; name text;
BEGIN
  PERFORM set_config('notewell.tenant_name', drop_tenant.tenant, true);
  SELECT t.id INTO number FROM notewell.tenants t WHERE t.name = drop_tenant.tenant AND t.agent = drop_tenant.agent;
  IF number IS NULL THEN RAISE EXCEPTION 'there is no tenant % of the agent %', tenant, agent; END IF;
  PERFORM set_config('notewell.tenant', number::text, true);
  PERFORM pg_advisory_xact_lock(@LOCK, number);
  FOREACH name IN ARRAY ARRAY[@NAMES] LOOP
    EXECUTE format('DELETE FROM notewell.%I WHERE tenant = $1', name) USING number;
  END LOOP;
  DELETE FROM notewell.tenants t WHERE t.id = number;
END $$;
REVOKE ALL ON FUNCTION notewell.bind_role, notewell.drop_tenant FROM PUBLIC;
CREATE OR REPLACE FUNCTION notewell.count_rows() RETURNS void  -- which only the owner may, for whoever writes
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
BEGIN
  ANALYZE (SKIP_LOCKED) @COUNTED;
END $$;
"""


def _first_migration() -> str:
    policies = [_policies(table, f"tenant = ({_SET_ID})", "tenant") for table in TENANT_TABLES]
    by_name_or_id = f"{_SET_NAME} OR id = ({_SET_ID})"
    return "".join((FIRST_SCHEMA, *policies, _policies("tenants", by_name_or_id, "id")))


def _functions() -> str:
    return (
        FUNCTIONS.replace("@TABLES", ", ".join(f"notewell.{table}" for table in TENANT_TABLES))
        .replace("@NAMES", ", ".join(f"'{table}'" for table in TENANT_TABLES))
        .replace("@COUNTED", ", ".join(f"notewell.{table}" for table in ("tenants", *TENANT_TABLES)))
        .replace("@LOCK", str(LOCK_CLASS))
    )


def _policies(table: str, is_set: str, column: str) -> str:
    script = _POLICIES.replace("@TABLE", table).replace("@SET", is_set).replace("@COLUMN", column)
    return script.replace("@BOUND", _BOUND)


# The script at position n makes version n + 1 of version n.
MIGRATIONS: tuple[str, ...] = (_first_migration(), SECOND_SCHEMA)

_LOOK = """
SELECT current_setting('server_version_num')::int,
  (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
  (SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'),
  (SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'notewell'),
  to_regnamespace('notewell') IS NOT NULL, pg_is_in_recovery(), current_database(), current_user,
  has_database_privilege(current_database(), 'CREATE'),
  EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('notewell') AND relname = 'schema_version'),
  (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('notewell') AND relkind = 'r'),
  (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user),
  has_schema_privilege(to_regnamespace('notewell')::oid, 'USAGE'),
  (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'notewell')
"""


class Server:
    """Facts about the server."""

    def __init__(self, row: Sequence[object]) -> None:
        (version, self.pgvector, self.vector_schema, self.mark, self.has_schema, self.is_standby, self.database,
         self.role, self.may_create, self.has_version, self.tables, self.bypasses,
         self.may_use, self.owns) = row  # fmt: skip
        self.version = int(str(version))


def prepare_schema(connections: Connections, *, create: bool) -> Server:
    """Check the server, and create or upgrade the tables; raise StoreError with the SQL for what is missing."""
    server, version = _looked(connections)
    if server.pgvector is None and create and not server.is_standby and _create_extension(connections):
        server, version = _looked(connections)
    if not _is_ready(server, version, connections):
        if server.is_standby or not create:
            found = "holds no tables of notewell yet" if version is None else "has tables of an older release"
            raise StoreError(
                f"{connections.secrets.shown} {found}",
                hint="run `notewell index` where the notes are, with store.url naming the primary server",
            )
        if version is not None and not server.owns:
            raise StoreError(
                f"{connections.secrets.shown} has tables of an older release, and the role {server.role} may not change"
                " them",
                hint="run `notewell index` once as the role that owns the schema notewell",
            )
        _migrate(connections)
        server, _ = _looked(connections)
    return server


def _looked(connections: Connections) -> tuple[Server, int | None]:
    with connections.transaction("BEGIN READ ONLY", _LOOK) as db:
        server = Server(db.begun[-1][0])
        return server, _version(db, server)


def _create_extension(connections: Connections) -> bool:
    """Try to create pgvector, which often only an administrator may; return whether it worked."""
    try:
        with connections.transaction("BEGIN", f"SELECT pg_advisory_xact_lock({LOCK_CLASS}, {MIGRATION_LOCK})") as db:
            db.rows("CREATE EXTENSION IF NOT EXISTS vector")
            db.commit()
    except StoreError:
        return False
    return True


def _version(db: Database, server: Server) -> int | None:
    if not server.has_schema or not server.may_use or not server.has_version:
        return None
    version: int = db.value("SELECT max(version) FROM notewell.schema_version")
    return version


def _is_ready(server: Server, version: int | None, connections: Connections) -> bool:
    """Return whether the tables are up to date; raise for a database that cannot be used."""
    missing = _missing(server)
    if missing:
        sql = "; ".join(what for what, _ in missing)
        hint = f"run as an administrator: {' '.join(fix for _, fix in missing)}"
        raise StoreError(f"{connections.secrets.shown} cannot hold a memory: {sql}", hint=hint)
    if server.has_schema and not server.may_use:
        raise StoreError(
            f"the role {server.role} may not use the schema notewell",
            hint=f"run as its owner: SELECT notewell.bind_role({_quoted_as(LITERAL, server.role)}, 'TENANT');",
        )
    if server.has_schema and server.mark != MARK and server.tables:
        raise StoreError(
            f"the database {server.database} has a schema notewell with tables that are not ours",
            hint="choose another database; nothing was changed",
        )
    if version is not None and version > len(MIGRATIONS):
        raise IndexTooNewError(
            f"{connections.secrets.shown} was written by a newer release"
            f" (schema {version}, this one knows {len(MIGRATIONS)})",
            hint="upgrade notewell",
        )
    return version == len(MIGRATIONS)


def _missing(server: Server) -> list[tuple[str, str]]:
    """Return what the server lacks, each with the fix."""
    found = []
    if server.version < LEAST_SERVER:
        found.append((f"it is PostgreSQL {server.version // 10_000}, and 16 is the oldest that works", "upgrade it."))
    if server.pgvector is None:
        found.append(("the extension pgvector is missing", "CREATE EXTENSION vector;"))
    elif tuple(int(part) for part in str(server.pgvector).split(".")[:2]) < LEAST_PGVECTOR:
        found.append((f"its pgvector is {server.pgvector}, and 0.8 is the oldest", "ALTER EXTENSION vector UPDATE;"))
    if not server.has_schema and not server.may_create:
        fix = f"CREATE SCHEMA notewell AUTHORIZATION {_quoted_as(NAME, server.role)};"
        found.append((f"the role {server.role} may not create a schema", fix))
    return found


def _quoted_as(mark: str, name: object) -> str:
    """Return a name between quotation marks for SQL: an administrator may run what an error suggests."""
    return f"{mark}{str(name).replace(mark, 2 * mark)}{mark}"


def _migrate(connections: Connections, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Upgrade the tables in one transaction; a second process waits, then finds nothing to do."""
    with connections.transaction("BEGIN", f"SELECT pg_advisory_xact_lock({LOCK_CLASS}, {MIGRATION_LOCK})") as db:
        # IF NOT EXISTS would require the privilege, and to_regnamespace() may return a cached result.
        if not db.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'notewell'"):
            db.rows("CREATE SCHEMA notewell")
        db.rows(f"COMMENT ON SCHEMA notewell IS '{MARK}'")
        vector_schema = db.value(
            "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace"
            " WHERE extname = 'vector'"
        )
        version = 0
        if db.value(
            "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE nspname = 'notewell' AND relname = 'schema_version'"
        ):
            version = db.value("SELECT max(version) FROM notewell.schema_version")
        for number, script in enumerate(migrations[version:], start=version + 1):
            db.script(script.replace("@VECTOR", vector_schema))
            db.rows("UPDATE notewell.schema_version SET version = %s", (number,))
        db.script(_functions())
        db.commit()


# --- what must not exist among the rows of a generation ------------------------------------------

_HERE = "tenant = %(tenant)s AND generation = %(generation)s"
_OWN_TOTALS = f"""
SELECT (g.documents <> d.rows)::int + (g.chunks <> c.rows)::int + (g.vectors <> v.rows)::int
  + (g.skipped <> c.skipped)::int + (g.terms <> c.terms)::int
FROM (SELECT * FROM notewell.generations WHERE {_HERE}) g,
  (SELECT count(*) AS rows FROM notewell.documents WHERE {_HERE}) d,
  (SELECT count(*) AS rows, coalesce(sum(terms), 0) AS terms, count(*) FILTER (WHERE has_vector = 2) AS skipped
   FROM notewell.chunks WHERE {_HERE}) c,
  (SELECT count(*) AS rows FROM notewell.vectors WHERE {_HERE}) v
"""
_NO_DOCUMENT = f"""
SELECT count(*) FROM notewell.chunks
WHERE {_HERE} AND document NOT IN (SELECT id FROM notewell.documents WHERE {_HERE})
"""
_NO_VECTOR = f"""
SELECT count(*) FROM notewell.chunks
WHERE {_HERE} AND has_vector = 1 AND id NOT IN (SELECT chunk FROM notewell.vectors WHERE {_HERE})
"""
_NO_CHUNK = f"""
SELECT count(*) FROM notewell.vectors
WHERE {_HERE} AND chunk NOT IN (SELECT id FROM notewell.chunks WHERE {_HERE} AND has_vector = 1)
"""
# Each query counts what must not exist.
_FAULTS: tuple[tuple[str, str], ...] = (
    ("{} chunks belong to no document", _NO_DOCUMENT),
    ("{} chunks are marked embedded and have no vector", _NO_VECTOR),
    ("{} vectors belong to no chunk that is marked embedded", _NO_CHUNK),
    ("{} of the stored totals are wrong", _OWN_TOTALS),
)
_READ_AT_ONCE = 5_000


def find_faults(db: Database, totals: Totals, unmerged: Unmerged) -> Iterator[str]:
    """Yield inconsistencies between rows."""
    key = {"tenant": totals.tenant, "generation": totals.generation}
    for sentence, query in _FAULTS:
        count = db.value(query, key)
        if count:
            yield sentence.format(count)
    yield from _posting_faults(db, totals, unmerged)


def _posting_faults(db: Database, totals: Totals, unmerged: Unmerged) -> Iterator[str]:
    """Yield inconsistencies between chunks and postings."""
    chunks = db.rows("SELECT id, terms FROM notewell.chunks WHERE tenant = %s AND generation = %s", totals.key)
    lengths = np.zeros(totals.last_chunk + 1, np.int64)
    held = np.zeros(totals.last_chunk + 1, np.int64)
    for chunk_id, terms in chunks:
        lengths[chunk_id] = min(terms, 0xFFFF)
    wrong = unsorted = 0
    for _, block, count, data in chain(_stored_blocks(db, totals), _recent_blocks(unmerged)):
        rows = np.frombuffer(data, POSTING)
        ids = rows["id"].astype(np.int64)
        unsorted += len(rows) != count or bool((np.diff(ids) <= 0).any()) or bool((ids < block).any())
        known = ids <= totals.last_chunk
        held[ids[known]] = rows["length"][known]
        wrong += int((~known).sum())
    gone = unmerged.dead
    held[gone[gone <= totals.last_chunk]] = 0
    if wrong := wrong + int(((lengths == 0) & (held > 0)).sum()):
        yield f"{wrong} keyword entries belong to no chunk"
    if missing := int(((lengths > 0) & (held == 0)).sum()):
        yield f"{missing} chunks have no keyword entry"
    if differing := int(((lengths > 0) & (held > 0) & (lengths != held)).sum()):
        yield f"{differing} chunks have keyword entries of another length"
    if unsorted:
        yield f"{unsorted} posting blocks are out of order"


def _stored_blocks(db: Database, totals: Totals) -> Iterator[tuple[Any, ...]]:
    after = ("", -1)
    while found := db.rows(
        "SELECT term, block, count, data FROM notewell.postings WHERE tenant = %s AND generation = %s"
        " AND (term, block) > (%s, %s) ORDER BY term, block LIMIT %s",
        (*totals.key, *after, _READ_AT_ONCE),
    ):
        after = found[-1][:2]
        yield from found


def _recent_blocks(unmerged: Unmerged) -> Iterator[tuple[Any, ...]]:
    for bundle in unmerged.recent:
        for term, block, count, data, _ in bundle.blocks():
            yield term, block, count, data
