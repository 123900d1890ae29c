"""Part `schemas` of the fault campaign: the attacker of forger.py changes the schema of a store, so that
its tables do something else, or show a server other lines than the verification (F-J5, F-J8, D9). Such
a store must be named by the verification and refused by a server, also one that is changed while it is
served; what has no effect at all may pass. Tables and views of others beside ours are no finding.

    python3 tests/campaign/schemas.py sqlite|postgres SEED [ATTACKS]"""
import json
import os
import pathlib
import random
import subprocess
import sys
import time
import uuid

import forger
import harness

NAME = "schemas"
SCALE = float(os.environ.get("PERDURA_SCHEMAS_SCALE", "1"))
GOAL, ATTACKS = int(200 * SCALE), 50
SERVED = 0.1  # so many of them while a server runs
EVIL = "harmless_looking"
HOLD = "CREATE TABLE perdura_own_notes (id INTEGER PRIMARY KEY, note TEXT)"


# ---- on both ----

def tables(case):
    return case.dialect.schema_tables(case.store)


def added_trigger(case, rng):
    case.put(*case.dialect.trigger(rng.choice(tables(case)), rng.choice(("INSERT", "UPDATE", "DELETE")),
                                   "DELETE FROM execution_logs WHERE " +
                                   case.where(rng.choice(case.ended))))
    return EVIL


def view_in_place(case, rng):
    """Of a table that is still there, under another name."""
    name = rng.choice(("execution_logs", "log_heads", "log_anchors", "store_info", "execution_rows",
                       "task_states"))
    case.put(*case.dialect.renamed(name), f"CREATE VIEW {name} AS SELECT * FROM {EVIL}")
    return name


def added_column(case, rng):
    name = rng.choice(tables(case))
    stored = " STORED" if case.dialect.name == "postgres" else ""
    case.put(f"ALTER TABLE {name} ADD COLUMN {EVIL} integer " +
             rng.choice(("", "DEFAULT 7", f"GENERATED ALWAYS AS (7){stored}")))
    return name


def added_index(case, rng):
    """Where it makes rows impossible, inserts that pass over conflicts lose them."""
    name = rng.choice(("log_heads (execution_id, lines)", "execution_logs (id, seq)",
                       "log_anchors (serial, record_hash)"))
    case.put(f"CREATE {rng.choice(('', 'UNIQUE '))}INDEX {EVIL} ON {name}" +
             rng.choice(("", " WHERE 1 = 1")))
    return EVIL


def missing_index(case, rng):
    name = case.dialect.some_index
    case.put(f"DROP INDEX {name}")
    return name


def partial_index(case, rng):
    """Ours, but for the rows that matter."""
    name, table = case.dialect.some_index, case.dialect.some_index_table
    case.put(f"DROP INDEX {name}", f"CREATE INDEX {name} ON {table} WHERE execution_id IS NULL"
             if table.startswith("log_heads") else f"CREATE INDEX {name} ON {table} WHERE 1 = 0")
    return name


def other_view(case, rng):
    case.put("DROP VIEW executions", "CREATE VIEW executions AS SELECT * FROM execution_rows")
    return "executions"


def missing_table(case, rng):
    case.put("DROP TABLE api_tokens")
    return "api_tokens"


BOTH = (added_trigger, added_trigger, added_trigger, view_in_place, view_in_place, added_column,
        added_index, missing_index, partial_index, other_view, missing_table)


# ---- SQLite ----

def two_faces(case, rng):
    """A view that shows readers other lines than the verification, by how long they wait for locks."""
    columns = [row[1] for row in case.rows("PRAGMA table_info(execution_logs)")]
    shown = ", ".join(f"CASE WHEN (SELECT timeout FROM pragma_busy_timeout) < 3000 THEN 'all is well' "
                      f"ELSE {name} END AS {name}" if name == "message" else name for name in columns)
    new = ", ".join(f"NEW.{name}" for name in columns)
    case.put(*case.dialect.renamed("execution_logs"),
             f"CREATE VIEW execution_logs AS SELECT {shown} FROM {EVIL}",
             "CREATE TRIGGER execution_logs_in INSTEAD OF INSERT ON execution_logs BEGIN "
             f"INSERT INTO {EVIL} ({', '.join(columns)}) VALUES ({new}); END")
    return "execution_logs"


def hidden_trigger(case, rng):
    """Its row in sqlite_master says that it is a table of another program."""
    case.put(*case.dialect.trigger("task_states", "UPDATE", "DELETE FROM execution_logs"),
             "PRAGMA writable_schema = ON",
             f"UPDATE sqlite_master SET type = 'table', name = 'own', tbl_name = 'own' WHERE name = '{EVIL}'")
    return "own"


def other_text(case, rng):
    """The same columns, but conflicts are passed over, or letters of any case are one."""
    old, new = rng.choice((("seq INTEGER NOT NULL", "seq INTEGER NOT NULL ON CONFLICT IGNORE"),
                           ("message TEXT NOT NULL", "message TEXT COLLATE NOCASE NOT NULL"),
                           ("context TEXT", "context TEXT DEFAULT 'all is well'")))
    case.put("PRAGMA writable_schema = ON", f"UPDATE sqlite_master SET sql = replace(sql, '{old}', "
             f"{forger.quote(new)}) WHERE name = 'execution_logs'")
    return "execution_logs"


def other_index_pages(case, rng):
    """An index by which readers find executions of a task, or audit entries, is that of another table,
    which lacks some."""
    table, column, gone = rng.choice((("execution_rows", "task", f"id = {case.uid(rng.choice(case.ended))}"),
                                      ("audit_log", "id", "seq % 2 = 0")))
    case.put(f"CREATE TABLE {EVIL} AS SELECT * FROM {table}", f"DELETE FROM {EVIL} WHERE {gone}",
             f"CREATE INDEX {EVIL}_{column} ON {EVIL} ({column})", "PRAGMA writable_schema = ON",
             "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE "
             f"name = '{EVIL}_{column}') WHERE name = '{table}_{column}'")
    return table


def other_table_pages(case, rng):
    """The table is another one, whose pages have the same form: lines are changed in it."""
    text = case.rows("SELECT sql FROM sqlite_master WHERE name = 'execution_logs'")[0][0]
    execution = rng.choice(case.ended)
    case.put(text.replace("CREATE TABLE execution_logs", f"CREATE TABLE {EVIL}"),
             f"INSERT INTO {EVIL} SELECT * FROM execution_logs",
             f"UPDATE {EVIL} SET message = 'all is well' WHERE {case.where(execution)}",
             "PRAGMA writable_schema = ON",
             "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE "
             f"name = '{EVIL}') WHERE name = 'execution_logs'")
    return str(uuid.UUID(execution))


def shadowed_function(case, rng):
    case.put("CREATE TABLE json_each (key, value, atom)")
    return "json_each"


def virtual_table(case, rng):
    case.put(f"CREATE VIRTUAL TABLE {EVIL} USING fts5(x)")
    return EVIL


def missing_trigger(case, rng):
    case.put("DROP TRIGGER tasks_bounds")
    return "tasks_bounds"


SQLITE = (two_faces, two_faces, hidden_trigger, other_text, other_index_pages, other_table_pages,
          shadowed_function, virtual_table, missing_trigger)
UNREFUSED = ("other_index_pages", "other_table_pages")  # a start does not read all pages


# ---- PostgreSQL ----

def rule(case, rng):
    name = rng.choice(("execution_logs", "log_heads", "log_anchors"))
    what = rng.choice(("DELETE", "INSERT", "UPDATE"))
    case.put(f"CREATE RULE {EVIL} AS ON {what} TO {name} " +
             rng.choice(("DO INSTEAD NOTHING", "DO ALSO DELETE FROM execution_logs")))
    return EVIL


def row_security(case, rng):
    """Readers see other rows than the verification, by name, role or time."""
    sees = rng.choice(("current_setting('application_name') = 'perdura verify'",
                       "current_user <> 'perdura'", "extract(second FROM now()) > 30"))
    name = rng.choice(("execution_logs", "execution_rows", "log_heads"))
    case.put(f"CREATE POLICY {EVIL} ON {name} AS RESTRICTIVE USING ({sees})",
             f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
    return EVIL


def silent_security(case, rng):
    """Without a policy there are no rows at all but for the owner."""
    case.put("ALTER TABLE execution_logs FORCE ROW LEVEL SECURITY")
    return "execution_logs"


def other_function(case, rng):
    case.put("CREATE OR REPLACE FUNCTION perdura_expect(have bigint, want bigint, what text) RETURNS void "
             "LANGUAGE plpgsql AS $$ BEGIN DELETE FROM execution_logs; END $$")
    return "perdura_expect"


def nearer_function(case, rng):
    """It fits the call better than the one of the database, which takes any array."""
    case.put("CREATE FUNCTION unnest(uuid[]) RETURNS SETOF uuid LANGUAGE sql AS "
             "$$ SELECT NULL::uuid WHERE false $$")
    return "unnest"


def nearer_operator(case, rng):
    case.put("CREATE FUNCTION public.never(log_level, text) RETURNS boolean LANGUAGE sql AS "
             "$$ SELECT false $$",
             "CREATE OPERATOR = (LEFTARG = log_level, RIGHTARG = text, FUNCTION = public.never)")
    return "operator ="


IN_CATALOG = "SET LOCAL allow_system_table_mods = on"


def function_in_catalog(case, rng):
    """Found before all others, also before ours."""
    name, made = rng.choice((
        ("unnest", "unnest(uuid[]) RETURNS SETOF uuid LANGUAGE sql AS $$ SELECT NULL::uuid WHERE false $$"),
        ("perdura_key", "perdura_key(uuid) RETURNS bigint LANGUAGE sql AS $$ SELECT 0::bigint $$")))
    case.put(IN_CATALOG, f"CREATE FUNCTION pg_catalog.{made}")
    return f"built-in function {name}"


def operator_of_the_database(case, rng):
    case.put("CREATE FUNCTION public.same(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS "
             "$$ SELECT texteq($1, $2) $$")
    case.put(*rng.choice((
        ("UPDATE pg_operator SET oprcode = 'public.same'::regproc WHERE oid = '=(text,text)'::regoperator",),
        (IN_CATALOG, "CREATE FUNCTION public.never(log_level, text) RETURNS boolean LANGUAGE sql AS "
         "$$ SELECT false $$", "CREATE OPERATOR pg_catalog.= (LEFTARG = log_level, RIGHTARG = text, "
         "FUNCTION = public.never)"))))
    return "built-in operator ="


def heir(case, rng):
    case.put(f"CREATE TABLE {EVIL} () INHERITS ({rng.choice(('execution_logs', 'log_heads'))})")
    return EVIL


def checking_function(case, rng):
    name = rng.choice(("execution_logs", "task_states"))
    case.put("CREATE FUNCTION public.look() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
             "DELETE FROM perdura.execution_logs; RETURN true; END $$",
             f"ALTER TABLE {name} ADD CONSTRAINT {EVIL} CHECK (public.look()) NOT VALID")
    return EVIL


def code_of_others(case):
    """Functions that run in the session of their callers, and what calls them."""
    case.put("CREATE SCHEMA evil",
             "CREATE FUNCTION evil.look(text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM "
             "set_config('search_path', 'evil, perdura, pg_temp', false); RETURN true; END $$",
             "CREATE FUNCTION evil.both(bigint, text) RETURNS boolean IMMUTABLE LANGUAGE sql AS "
             "$$ SELECT evil.look($2) $$",
             "CREATE OPERATOR evil.=== (LEFTARG = bigint, RIGHTARG = text, FUNCTION = evil.both)",
             "CREATE DOMAIN evil.kind AS text CHECK (evil.look(value))",
             "CREATE TABLE evil.workers (id text PRIMARY KEY)",
             "CREATE FUNCTION evil.armed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
             "evil.look(''); RETURN NULL; END $$")


def month_of(case):
    [[month]] = case.rows("SELECT max(relname) AS name FROM pg_class WHERE relname ~ "
                          "'^execution_rows_20.._..$' AND relname < 'execution_rows_' || "
                          "to_char(now() + interval '1 month', 'YYYY_MM')")
    return month


# What only a month has; its table has nothing of the kind. Each with what takes it back.
UNCHECKED = f"ALTER TABLE {{0}} DROP CONSTRAINT {EVIL}"
ON_MONTH = (
    (f"CREATE TRIGGER {EVIL} AFTER UPDATE ON {{0}} FOR EACH ROW EXECUTE FUNCTION evil.armed()",
     f"DROP TRIGGER {EVIL} ON {{0}}"),
    (f"CREATE INDEX {EVIL} ON {{0}} (evil.look(status))", f"DROP INDEX {EVIL}"),
    (f"CREATE INDEX {EVIL} ON {{0}} ((task OPERATOR(evil.===) status))", f"DROP INDEX {EVIL}"),
    (f"CREATE INDEX {EVIL} ON {{0}} (task) WHERE task OPERATOR(evil.===) status", f"DROP INDEX {EVIL}"),
    (f"CREATE UNIQUE INDEX {EVIL} ON {{0}} (task, attempt_number)", f"DROP INDEX {EVIL}"),
    (f"ALTER TABLE {{0}} ADD CONSTRAINT {EVIL} CHECK (evil.look(status))", UNCHECKED),
    (f"ALTER TABLE {{0}} ADD CONSTRAINT {EVIL} CHECK (task OPERATOR(evil.===) status)", UNCHECKED),
    (f"ALTER TABLE {{0}} ADD CONSTRAINT {EVIL} CHECK ((status::evil.kind) IS NOT NULL)", UNCHECKED),
    (f"ALTER TABLE {{0}} ADD CONSTRAINT {EVIL} FOREIGN KEY (worker_id) REFERENCES evil.workers "
     "ON DELETE CASCADE NOT VALID", UNCHECKED),
    (f"CREATE RULE {EVIL} AS ON DELETE TO {{0}} DO INSTEAD NOTHING", f"DROP RULE {EVIL} ON {{0}}"),
    (f"CREATE POLICY {EVIL} ON {{0}} USING (false)", f"DROP POLICY {EVIL} ON {{0}}"))


def on_month(case, rng):
    code_of_others(case)
    month = month_of(case)
    case.put(rng.choice(ON_MONTH)[0].format(month))
    return f"{EVIL} of {month}"


# Code of others runs in the server's session when a row of ours goes.
TABLE = f"CREATE TABLE evil.{EVIL} (task bigint UNIQUE REFERENCES {{}}, note text)"
GOES = TABLE.format("task_specs ON DELETE CASCADE")
ARMED = "FOR EACH ROW EXECUTE FUNCTION evil.armed()"
REFERS = (
    (TABLE.format("task_states ON DELETE CASCADE"), f"CREATE TRIGGER t AFTER DELETE ON evil.{EVIL} {ARMED}"),
    (GOES, f"CREATE TRIGGER t AFTER DELETE ON evil.{EVIL} {ARMED}"),
    (TABLE.format("task_specs ON DELETE SET NULL"), f"ALTER TABLE evil.{EVIL} ADD CHECK (evil.look(note))"),
    (TABLE.format("task_specs ON DELETE SET NULL"),
     f"ALTER TABLE evil.{EVIL} ADD made boolean GENERATED ALWAYS AS (evil.look(note)) STORED"),
    (GOES, f"CREATE RULE r AS ON DELETE TO evil.{EVIL} DO ALSO SELECT evil.look('')"),
    (GOES, f"CREATE INDEX ON evil.{EVIL} (task) WHERE evil.look('')"),
    (GOES, f"CREATE INDEX ON evil.{EVIL} (task) WHERE task OPERATOR(evil.===) ''"),
    (GOES, f"ALTER TABLE evil.{EVIL} ADD CHECK ((note::evil.kind) IS NOT NULL)"),
    (GOES, f"CREATE STATISTICS evil.s ON (evil.look('') OR note IS NULL), task FROM evil.{EVIL}"),
    (GOES, f"CREATE TABLE evil.{EVIL}_next (task bigint REFERENCES evil.{EVIL} (task) ON DELETE CASCADE)",
     f"CREATE TRIGGER t AFTER DELETE ON evil.{EVIL}_next {ARMED}"))


def refers(case, rng):
    code_of_others(case)
    case.put(*rng.choice(REFERS))
    return EVIL


def planned_code(case, rng):
    """The database runs it when it plans a statement about the table."""
    code_of_others(case)
    case.put(f"CREATE STATISTICS evil.{EVIL} ON (evil.look('') OR status IS NULL), task FROM "
             + rng.choice(("task_states", "execution_rows")))
    return EVIL


def rows_that_go_along(case, rng):
    """As the documentation shows it (B8), in a database that writes its objects otherwise."""
    name = case.store.rsplit("/", 1)[1]
    case.put("CREATE TABLE public.analyses (contract text PRIMARY KEY CHECK (contract <> ''), task_id uuid NOT NULL, "
             "task bigint GENERATED ALWAYS AS (perdura.perdura_key(task_id)) STORED REFERENCES "
             "perdura.task_specs (task) ON DELETE CASCADE)", "CREATE INDEX ON public.analyses (task)",
             "CREATE TABLE own_notes (analysis text REFERENCES public.analyses ON DELETE CASCADE, "
             "note text)", "CREATE TABLE own_kinds (kind integer PRIMARY KEY)",
             "CREATE TABLE own_more (kind integer REFERENCES own_kinds)",
             "CREATE TABLE own_workers (id text REFERENCES workers ON DELETE SET NULL)",
             "CREATE STATISTICS public.s ON lane, status FROM task_states",
             f"ALTER DATABASE {name} SET {rng.choice(RENDERING)}")
    return None


RENDERING = ("quote_all_identifiers = on", "DateStyle = 'German'", "IntervalStyle = iso_8601",
             "bytea_output = escape", "extra_float_digits = -5", "standard_conforming_strings = off",
             "transform_null_equals = on")


def other_default(case, rng):
    case.put("ALTER TABLE log_heads ALTER COLUMN closed SET DEFAULT 'completed'")
    return "log_heads"


def disabled_trigger(case, rng):
    case.put("ALTER TABLE jobs DISABLE TRIGGER jobs_by_hand")
    return "jobs_by_hand"


def shadow_schema(case, rng):
    """A connection is to find a view of another schema first; ours say where they look."""
    name = case.store.rsplit("/", 1)[1]
    case.put("CREATE SCHEMA shadow",
             "CREATE VIEW shadow.execution_logs AS SELECT * FROM perdura.execution_logs WHERE false",
             "CREATE VIEW public.execution_logs AS SELECT * FROM perdura.execution_logs WHERE false",
             f"ALTER DATABASE {name} SET search_path = shadow, perdura")
    return None


POSTGRES = (function_in_catalog, operator_of_the_database, rule, rule, row_security, row_security, silent_security, other_function, nearer_function,
            nearer_operator, heir, checking_function, on_month, on_month, on_month, refers, refers, planned_code,
            other_default, disabled_trigger, shadow_schema, rows_that_go_along)


HARMLESS = ("shadow_schema", "rows_that_go_along")


class Sqlite(forger.Sqlite):
    deleted_first = "task_tags"  # of all that goes with a task
    some_index, some_index_table = "log_heads_open", "log_heads (execution_id)"

    def trigger(self, table, when, what, name=EVIL):
        return [f"CREATE TRIGGER {name} AFTER {when} ON {table} BEGIN {what}; END"]

    def untrigger(self, table, name):
        return f"DROP TRIGGER {name}"

    def renamed(self, table):
        return ["PRAGMA legacy_alter_table = ON", f"ALTER TABLE {table} RENAME TO {EVIL}"]

    def schema_tables(self, store):
        return [row[0] for row in self.rows(store, "SELECT name FROM sqlite_master WHERE type = 'table' "
                                            "ORDER BY name")]


class Postgres(forger.Postgres):
    deleted_first = "settled_rows"
    some_index, some_index_table = "log_heads_open", "log_heads (execution_id)"

    def trigger(self, table, when, what, name=EVIL):
        return [f"CREATE FUNCTION public.{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; "
                "RETURN NULL; END $$",
                f"CREATE TRIGGER {name} AFTER {when} ON {table} FOR EACH ROW EXECUTE FUNCTION "
                f"public.{name}()"]

    def untrigger(self, table, name):
        return f"DROP TRIGGER {name} ON {table}"

    def renamed(self, table):
        return [f"ALTER TABLE {table} RENAME TO {EVIL}"]

    def schema_tables(self, store):
        return [row[0] for row in self.rows(
            store, "SELECT relname AS name FROM pg_class WHERE relnamespace = 'perdura'::regnamespace "
            "AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname")]


def move(case, execution, task, table, name):
    """As soon as a row of the table is deleted the execution is one of that task."""
    key = f"(SELECT task FROM task_states WHERE id = {case.uid(task)})"
    if case.dialect.name == "postgres":
        key = key.replace("task_states", "perdura.task_states")
    rows = "perdura.execution_rows" if case.dialect.name == "postgres" else "execution_rows"
    case.put(*case.dialect.trigger(table, "DELETE", f"UPDATE {rows} SET task = {key} WHERE "
                                   f"id = {case.uid(execution)}", name))


def moved_while_deleted(case, victim, other):
    """Lines of one task are to be removed, and that signed, with another task that a user deletes."""
    move(case, victim, case.tasks[other], case.dialect.deleted_first, "there")
    move(case, victim, case.tasks[victim], "execution_logs", "back")
    case.apply()
    case.serve(lambda client: client.expect(204, "DELETE", f"/v1/tasks/{uuid.UUID(case.tasks[other])}"),
               retention=False, more="allow_changed_schema: true\n")
    case.put(case.dialect.untrigger(case.dialect.deleted_first, "there"),
             case.dialect.untrigger("execution_logs", "back"))
    case.apply()


# ---- judging ----

def verified(case):
    """All that a verification says, whether it is content or not, or cannot even begin."""
    done = subprocess.run([harness.binary(), "verify", "--json", "--logs", "--anchor",
                           os.path.join(case.folder, "anchor"), "--public-key", case.stand.public_key,
                           "--store", case.dialect.verified(case.store, case.folder)],
                          capture_output=True, text=True, cwd=case.folder, timeout=240, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def refused(case):
    """What a server says that does not start; None where it does."""
    server = harness.Server(case.folder, "--config", os.path.join(case.folder, "server.yaml"))
    pathlib.Path(case.folder, "server.yaml").write_text(forger.CONFIG.format(folder=case.folder, every="100ms"))
    server.store = case.store
    try:
        server.start()
    except AssertionError:
        return server.log()
    finally:
        server.stop()
    return None


def beside_server(case, rng, attack):
    """The server ends by itself, before anything is done through that schema."""
    server = case.stand.server(case.folder, case.store)
    try:
        named = attack(case, rng)
        case.apply()
        server.process.wait(60)
        return named, server.log()
    finally:
        server.stop()


def one_attack(stand, attack, rng, row):
    case = forger.Case(stand)
    name = attack.__name__
    try:
        served = rng.random() < SERVED and name not in UNREFUSED and name not in HARMLESS
        if served:
            named, log = beside_server(case, rng, attack)
        else:
            named, log = attack(case, rng), None
            case.apply()
        faults = []
        fine, text = verified(case)
        if named is None and not fine:
            faults.append(f"has no effect and is a finding: {text[:300]}")
        if named is None and (said := refused(case)):
            faults.append(f"has no effect and is refused: {said[:300]}")
        if named and (fine or named not in text):
            faults.append(f"verification does not name {named}: {text[:300]}")
        if named and name not in UNREFUSED and named not in (log or refused(case) or ""):
            faults.append(f"a server takes it: {named}")
        row["attacks"] += 1
        row["found"] += not faults
        row["kinds"][name] = row["kinds"].get(name, 0) + 1
        row["findings"] += [f"{name}{' beside a server' if served else ''}: {fault}" for fault in faults]
    finally:
        case.close()


OWN_NAMES = ("CREATE TABLE `own 1` (a TEXT UNIQUE)", "CREATE TABLE [own 2] (a)",
             "CREATE TABLE 'own 3' (a)", "CREATE TABLE notizen_f\u00fcr_uns (a)",
             "CREATE TABLE own$4 (a)", "CREATE INDEX own_5\n    ON own$4\n    (a)",
             "create index `own 6` on `own 1`(a)", "CREATE UNIQUE INDEX [own 7] ON[own 2] (a)",
             "CREATE VIEW own_8\nAS SELECT 1", 'CREATE TABLE "own ""9""" (a UNIQUE)',
             'CREATE INDEX "own ""10""" -- of ours\n ON/* the table */"own ""9""" (a)',
             "CREATE TABLE own_11 (a)", "ALTER TABLE own_11 RENAME TO [own \n12]",
             "CREATE TABLE [own \n13] (a REFERENCES `own 1` (a) ON DELETE CASCADE)",
             "CREATE TABLE own_14 (a INTEGER PRIMARY KEY AUTOINCREMENT)",
             "CREATE TABLE own_15 (task INTEGER REFERENCES task_specs (task) ON DELETE CASCADE, a TEXT "
             "CHECK (length(a) > 1))",
             "INSERT INTO own_15 SELECT task, 'a note' FROM task_states")


def untouched(stand, row):
    """Tables, indexes and views of others beside ours."""
    case = forger.Case(stand)
    try:
        case.put(HOLD, "CREATE INDEX perdura_own_notes_note ON perdura_own_notes (note)",
                 "CREATE VIEW perdura_own_view AS SELECT * FROM execution_logs", "ANALYZE",
                 *(OWN_NAMES if stand.dialect.name == "sqlite" else ()))
        case.apply()
        case.serve(retention=False)
        fine, text = verified(case)
        row["untouched"] += 1
        if not fine:
            row["findings"].append(f"an untouched copy: {text[:300]}")
    finally:
        case.close()


def attacks_on(dialect):
    return BOTH + (SQLITE if dialect.name == "sqlite" else POSTGRES)


def chunk(dialect, seed, count):
    rng = random.Random(seed)
    row = {"store": dialect.name, "attacks": 0, "found": 0, "untouched": 0, "kinds": {}, "findings": []}
    began = time.monotonic()
    stand = forger.Stand(dialect, rng)
    try:
        untouched(stand, row)
        for _ in range(count):
            one_attack(stand, rng.choice(attacks_on(dialect)), rng, row)
    finally:
        stand.close()
    row["seconds"] = round(time.monotonic() - began, 1)
    return row


def on(name, seed, count):
    if name == "sqlite":
        return chunk(Sqlite(), seed, count)
    from server import Postgres as Database
    with Database() as server:
        return chunk(Postgres(server), seed, count)


def run(ledger, say):
    forger.run(ledger, say, NAME, GOAL, lambda store, seed: on(store, seed, ATTACKS))


def summary(ledger):
    done, found = ledger.total(NAME, "attacks"), ledger.total(NAME, "found")
    if not done:
        return []
    return [("F-J5, F-J8, D9", f"{done:,} changes of the schema (triggers, views, rules, policies, functions, "
             "columns, indexes, pages) by an attacker who owns the store (SQLite, PostgreSQL), before a start "
             "and beside a server",
             f"not named or not refused {done - found}, false alarms on {ledger.total(NAME, 'untouched'):,} "
             f"stores with tables of others {sum('untouched' in text for text in ledger.findings(NAME))}")]


def report(ledger):
    return forger.report(ledger, NAME, "## Changed schemas",
                         "An attacker who owns the store changes its schema, so that tables do something else or show "
                         "a server other lines than the verification. Found means: verification names the object and a "
                         "server does not start, or ends where it runs. An index or a table whose pages were exchanged "
                         "only verification finds.")


def main():
    row = on(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else ATTACKS)
    print(json.dumps(row, indent=1))
    return 1 if row["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
