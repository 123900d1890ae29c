"""Logs of a PostgreSQL store that an attacker without the key writes to (F-J5, F-J8, D9): see
tests/campaign/forgery_cases.py."""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import unittest
import urllib.parse
import uuid

from server import Postgres

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))
import forger  # noqa: E402
import forgeries  # noqa: E402
import forgery_dark  # noqa: E402
import harness  # noqa: E402
import schemas  # noqa: E402
from forgery_cases import ForgeryCases  # noqa: E402


class LogForgeryPostgres(ForgeryCases, unittest.TestCase):
    changes = (schemas.function_in_catalog, schemas.operator_of_the_database, schemas.added_trigger, schemas.view_in_place, schemas.rule, schemas.row_security, schemas.heir,
               schemas.planned_code, schemas.rows_that_go_along)  # all of them: the campaign
    rounds = 2

    @classmethod
    def setUpClass(cls):
        postgres = Postgres()
        postgres.__enter__()
        cls.addClassCleanup(postgres.__exit__)
        cls.make_stand(schemas.Postgres(postgres))

    def test_f_j8_a_run_that_two_nodes_continue_in_the_dark_is_named(self):
        """Each line is written by another node than the one before it."""
        case = self.case()
        execution = case.held[0]
        forgery_dark.set_back(case, execution)
        case.apply()

        def during(client):
            server = self.stand.server(case.folder, case.store, "", "1h")
            other = forger.Client(server)
            try:
                dark = forgery_dark.begin(case, client, execution, [other])
                forgery_dark.finish(case, other, dark, forgery_dark.deleted)
            finally:
                other.doCleanups()
                server.stop()
        case.serve(during, retention=False, config="", every="1h")
        self.assertEqual(forgery_dark.lines_of(case, execution), [])
        self.assert_named(case, execution)

    def test_d9_lines_that_other_nodes_sign_or_remove_raise_no_alarm(self):
        """Two nodes write lines of the same runs, and each deletes tasks whose lines the other has just
        written."""
        case = self.case()
        beside = pathlib.Path(case.folder, "beside")
        beside.mkdir()
        for name in ("key", "anchor"):
            shutil.copy(pathlib.Path(case.folder, name), beside)
        logs = []

        def during(client):
            server = self.stand.server(str(beside), case.store, "", "300ms")
            other = forger.Client(server)
            try:
                for number in range(24):
                    one, two = (client, other) if number % 2 else (other, client)
                    one.enqueue(f"both{number}", timeout_ms=forger.HOUR_MS)
                    task = two.claim()[0]
                    for line in range(3):
                        (one if line % 2 else two).say(task, "INFO", f"line {line}")
                    if number % 3:
                        two.complete("worker-1", task)
                        one.expect(204, "DELETE", f"/v1/tasks/{task['id']}")
                forgery_dark.wait_settled(case)
            finally:
                other.doCleanups()
                server.stop()
                logs.append(server.log())
        logs.append(case.serve(during, retention=False, config="", every="300ms"))
        for log in logs:
            self.assertNotIn("log.forged", log)
        report = case.verify("--audit")
        self.assertTrue(report["ok"], report)

    def with_two_nodes(self, strike):
        """strike(case, one, two): clients of two nodes; once the first one leads, once the second. A
        record every two seconds."""
        for leads in (True, False):
            with self.subTest(leads=leads):
                case = self.case()
                beside = pathlib.Path(case.folder, "beside")
                beside.mkdir()
                for name in ("key", "anchor"):
                    shutil.copy(pathlib.Path(case.folder, name), beside)

                def during(client, case=case, beside=beside, leads=leads):
                    server = self.stand.server(str(beside), case.store, "", "2s")
                    other = forger.Client(server)
                    try:
                        strike(case, *((client, other) if leads else (other, client)))
                    finally:
                        other.doCleanups()
                        server.stop()
                case.serve(during, retention=False, config="", every="2s")

    def test_f_j5_lines_that_another_node_put_others_in_the_place_of_are_named(self):
        """Also when the others are gone, too."""
        def strike(case, one, two):
            execution = case.held[0]
            forgery_dark.take_back_in_time(case, one, execution)
            for number in range(3):
                forgery_dark.say_openly(case, two, execution, f"all is well {number}")
            forgery_dark.wait_settled(case)
            harness.wait_until(lambda: "log.forged" in one.server.log(), what="a look back")
            self.assert_named(case, execution, "while they are there")
            forgery_dark.end(case, two, execution)
            two.request("DELETE", f"/v1/tasks/{forgery_dark.task_of(case, execution)['id']}")
            self.assertEqual(forgery_dark.lines_of(case, execution), [])
            self.assert_named(case, execution, "when they are gone")
        self.with_two_nodes(strike)

    def test_f_j5_a_node_continues_and_removes_no_lines_in_the_place_of_its_own(self):
        """Before it has looked back."""
        def continues(case, one, execution):
            forgery_dark.say_openly(case, one, execution, "as it was before")
            forgery_dark.wait_settled(case)
            forgery_dark.end(case, one, execution)
        for how in (continues, forgery_dark.end):
            def strike(case, one, two, how=how):
                execution = case.held[0]
                forgery_dark.take_back_in_time(case, one, execution)
                for number in range(3):
                    forgery_dark.say_openly(case, two, execution, f"all is well {number}")
                how(case, one, execution)
                one.request("DELETE", f"/v1/tasks/{forgery_dark.task_of(case, execution)['id']}")
                self.assertEqual(forgery_dark.lines_of(case, execution), [])
                self.assertIn("refused", str(self.assert_named(case, execution, how.__name__)["findings"]))
            self.with_two_nodes(strike)

    def test_d18_audit_entries_that_another_node_put_others_in_the_place_of_are_named(self):
        def strike(case, one, two):
            newest = "SELECT max(seq) AS seq FROM audit_log"
            for _ in range(20):  # right behind a record, so that the next one comes too late
                forgery_dark.say_openly(case, one, case.held[1], "tick")
                forgery_dark.wait_settled(case)
                records = case.rows(forgery_dark.NEWEST)
                one.expect(200, "PATCH", "/v1/queues/default", {"concurrency": 7})
                case.put(f"DELETE FROM audit_log WHERE seq = {case.rows(newest)[0][0]}")
                case.apply()
                if records == case.rows(forgery_dark.NEWEST):
                    break
            for number in (8, 9):
                two.expect(200, "PATCH", "/v1/queues/default", {"concurrency": number})
            harness.wait_until(lambda: "log.forged" in one.server.log(), what="a look back")
            kinds = [finding["kind"] for finding in case.verify("--audit")["findings"]]
            self.assertIn("audit", kinds)
        self.with_two_nodes(strike)

    def test_f_j6_a_record_in_whose_place_another_node_made_one_is_missed(self):
        """The newest record goes before the anchor file has it, and the other node makes two, which say
        what a user removed."""
        def strike(case, one, two):
            two.register("worker-2")
            tasks = []
            for number in range(2):
                two.enqueue(f"goes{number}")
                tasks += two.claim("worker-2")
                two.report_ok("worker-2", tasks[-1], "log", level="INFO", message="hello")
                two.complete("worker-2", tasks[-1])
            forgery_dark.without_newest_record(case, one, case.held[0], 0, before_the_file=lambda: [
                two.expect(204, "DELETE", f"/v1/tasks/{task['id']}") for task in tasks])
            harness.wait_until(lambda: "newest record of the store was missing" in str(case.verify()["findings"]),
                               what="a record of that")
        self.with_two_nodes(strike)

    def test_f_j7_a_node_with_another_key_signs_nothing_when_it_is_alone(self):
        """Not when it removes lines, takes over, stops, or starts again."""
        case = self.case()
        beside = pathlib.Path(case.folder, "beside")
        beside.mkdir()
        beside.joinpath("key").write_text("6e" * 32 + "\n")
        beside.joinpath("key").chmod(0o600)

        def during(client):
            servers.append(self.stand.server(str(beside), case.store, "", "200ms"))
            other = forger.Client(servers[0])
            self.addCleanup(other.doCleanups)
            other.register("worker-2")
            other.enqueue("goes")
            task = other.claim("worker-2")[0]
            client.report("worker-2", client.element(task, "log", level="INFO", message="hello"))
            other.complete("worker-2", task)
            other.expect(204, "DELETE", f"/v1/tasks/{task['id']}")
        servers, records = [], "SELECT record FROM log_anchors"
        case.serve(during, retention=False, config="", every="200ms")
        harness.wait_until(lambda: "node.leads" in servers[0].log(), what="the other node to lead")
        alone = forger.Client(servers[0])
        self.addCleanup(alone.doCleanups)
        alone.expect(200, "PATCH", "/v1/queues/default", {"concurrency": 7})
        for _ in range(2):
            servers[0].stop()
            self.assertIn("log.unsigned", servers[0].log())
            self.assertEqual({json.loads(text)["key"] for text, in case.rows(records) if '"key"' in text},
                             {self.stand.public_key})
            self.assertEqual(case.rows("SELECT value FROM store_info WHERE name = 'log_public_key'"),
                             [[self.stand.public_key]])
            servers[0].start()
        servers[0].stop()

    def test_f_j5_a_node_that_does_not_lead_signs_what_it_wrote(self):
        """The leader makes no records while an attacker names another node in its place."""
        case = self.case()
        execution = case.held[0]

        def during(client):
            case.put("UPDATE leadership SET holder = 'gone-1', until = now() + interval '1 hour', "
                     "epoch = epoch + 1")
            case.apply()
            forgery_dark.take_back_in_time(case, client, execution)
            harness.wait_until(lambda: forgery_dark.remembered(case, execution),
                               what="a record of a node that does not lead")
        case.serve(during, retention=False, config="", every="2s")
        self.assert_named(case, execution)

    def test_d9_a_record_by_a_foreign_key_is_named_and_stops_no_records(self):
        """With the key's name beside it, as if the other nodes had another key by now."""
        case = self.case()
        serial, before, text = case.rows("SELECT serial, record_hash, record FROM log_anchors ORDER BY "
                                         "serial DESC LIMIT 1")[0]
        record = json.loads(text)
        record.update(serial=serial + 50, previous=before, kind="heads", items=[], key="ab" * 32)
        text = json.dumps(record, separators=(",", ":"))

        def during(client):
            client.say(self.stand.held[0], "INFO", "before")
            harness.wait_until(lambda: self.stand.settled(case.store), what="a record")
            case.put("INSERT INTO log_anchors (serial, record, record_hash, signature, created_at) VALUES "
                     f"({serial + 50}, {forger.quote(text)}, "
                     f"'{hashlib.sha256(text.encode()).hexdigest()}', '{'cd' * 64}', now())",
                     f"UPDATE store_info SET value = '{'ab' * 32}' WHERE name = 'log_public_key'")
            case.apply()
            client.say(self.stand.held[0], "INFO", "behind it")
            harness.wait_until(lambda: self.stand.settled(case.store), what="a record behind it")
        log = case.serve(during, retention=False, config="")
        self.assertIn("log.foreign_records", log)
        report = case.verify()
        told = [finding["subject"] for finding in report["findings"]]
        self.assertTrue(any(f"record {serial + 50}" in subject for subject in told), report)
        self.assertFalse(any("execution" in subject for subject in told), report)
        self.assertEqual(case.rows("SELECT value FROM store_info WHERE name = 'log_public_key'"),
                         [[self.stand.public_key]])

    def assert_refused(self, case, named):
        fine, text = schemas.verified(case)
        self.assertFalse(fine, text)
        self.assertIn(f"{named} was added; drop it", text)

    def test_f_j5_a_trigger_is_named_and_not_the_foreign_key_of_its_table(self):
        case = self.case()
        case.put(*case.dialect.trigger("job_dependencies", "INSERT", "DELETE FROM execution_logs"))
        case.apply()
        fine, text = schemas.verified(case)
        self.assertFalse(fine, text)
        self.assertIn(schemas.EVIL, text)
        self.assertNotIn("foreign key", text)

    def test_f_j5_what_only_a_month_has_is_named_and_never_the_month(self):
        case = self.case()
        schemas.code_of_others(case)
        case.apply()
        month = schemas.month_of(case)
        for change, back in schemas.ON_MONTH:
            with self.subTest(change):
                case.put(change.format(month))
                case.apply()
                self.assert_refused(case, f"{schemas.EVIL} of {month}")
                case.put(back.format(month))
                case.apply()
        for change, back, told in (
                ("DISABLE ROW LEVEL SECURITY", "ENABLE ROW LEVEL SECURITY", "(row security) was changed; set it back"),
                ("ALTER status SET DEFAULT evil.look('')", "ALTER status DROP DEFAULT",
                 "default status of execution_rows_")):
            case.put(f"ALTER TABLE {month} {change}")
            case.apply()
            self.assertIn(told, schemas.verified(case)[1])
            case.put(f"ALTER TABLE {month} {back}")
            case.apply()
        self.assertTrue(schemas.verified(case)[0])

    def test_f_j5_lines_that_no_reader_comes_to_are_named(self):
        case = self.case()
        state = "(SELECT task FROM task_states WHERE id = {})"
        hidden = [("DELETE FROM task_specs WHERE task = " + state, "no row in task_specs"),
                  ("UPDATE task_states SET lane = 424242 WHERE task = " + state, "no row in lanes"),
                  ("DELETE FROM task_states WHERE task = " + state, "no row in task_states"),
                  ("UPDATE task_states SET id = gen_random_uuid() WHERE task = " + state, "under another key")]
        for (change, _), execution in zip(hidden, case.ended):
            case.put(change.format(case.uid(case.tasks[execution])))
        case.apply()
        details = [finding["detail"] for finding in case.verify()["findings"]]
        for (_, told), execution in zip(hidden, case.ended):
            self.assert_named(case, execution, told)
            self.assertTrue(any(told in detail and str(uuid.UUID(execution)) in detail
                                for detail in details), (told, details))

    def test_f_j5_a_second_row_of_a_run_in_another_month_is_named(self):
        """Readers look into all months, who knows the id into one; the schema looks as it was."""
        case = self.case()
        execution, other = case.ended[0], case.tasks[case.silent[0]]
        (month, bound, rule), = case.rows(
            "SELECT c.relname::text AS month, pg_get_expr(c.relpartbound, c.oid) AS bound, "
            "pg_get_partition_constraintdef(c.oid) AS rule FROM pg_class c JOIN pg_inherits i ON "
            "i.inhrelid = c.oid WHERE i.inhparent = 'execution_rows'::regclass AND c.relname <> "
            "'execution_rows_other' ORDER BY c.relname DESC LIMIT 1")
        columns = ("execution, id, status, attempt_number, lease_token, worker_id, correlation_id, claim_seq, "
                   "start_seq, end_seq, created_at, started_at, completed_at")
        case.put(f"ALTER TABLE execution_rows DETACH PARTITION {month}",
                 f"INSERT INTO {month} (task, {columns}) SELECT (SELECT task FROM task_states WHERE id = "
                 f"{case.uid(other)}), {columns} FROM execution_rows WHERE id = {case.uid(execution)}",
                 f"ALTER TABLE {month} ADD CONSTRAINT fine CHECK ({rule}) NOT VALID",
                 "UPDATE pg_constraint SET convalidated = true WHERE conname = 'fine'",
                 f"ALTER TABLE execution_rows ATTACH PARTITION {month} {bound}",
                 f"ALTER TABLE {month} DROP CONSTRAINT fine")
        case.apply()
        self.assert_named(case, execution, "at once")
        case.deleted.append(str(uuid.UUID(other)))
        case.serve(forgeries.goes_on(case), retention=False, config="")
        self.assertTrue(case.kept(execution) or not case.verify()["ok"])
        self.assert_named(case, execution, "when the other task was deleted")

    def test_f_j5_a_line_that_is_there_twice_is_named(self):
        """Where one look at the lines ends and the next begins; the key looks as it was."""
        case, runs = self.case(), []

        def during(client):
            client.enqueue("long", timeout_ms=forger.HOUR_MS)
            task = client.claim()[0]
            for _ in range(20):
                client.report("worker-1", *[client.element(task, "log", level="INFO", message="as it was")
                                            for _ in range(100)])
            client.complete("worker-1", task)
            runs.append((task["id"], case.rows("SELECT max(execution_id::text) AS id FROM execution_logs")[0][0]))
        case.serve(during, retention=False, config="")
        (task, execution), = runs
        before = case.rows(f"SELECT count(*) AS n FROM execution_logs WHERE execution_id < {case.uid(execution)}")
        seq = 2000 - before[0][0]
        case.put("ALTER TABLE execution_logs DROP CONSTRAINT execution_logs_pkey",
                 "CREATE INDEX execution_logs_pkey ON execution_logs (execution_id, seq)",
                 "INSERT INTO execution_logs (id, execution_id, seq, log_level, message, logged_at, chain_hash) "
                 "SELECT gen_random_uuid(), execution_id, seq, log_level, 'all is well', logged_at, chain_hash FROM "
                 f"execution_logs WHERE {case.where(execution)} AND seq = {seq}",
                 "UPDATE pg_index SET indisunique = true WHERE indexrelid = 'execution_logs_pkey'::regclass",
                 "ALTER TABLE execution_logs ADD CONSTRAINT execution_logs_pkey PRIMARY KEY USING INDEX "
                 "execution_logs_pkey")
        case.apply()
        self.assertIn(f"line {seq} of execution {uuid.UUID(execution)} is there 2 times", str(case.verify()["findings"]))

    def test_f_j5_what_another_role_adds_ends_a_running_server(self):
        """Who may only make objects in the schema; none of the server's connections did it."""
        case = self.case()
        role = f"guest_{uuid.uuid4().hex[:12]}"
        case.put(f"CREATE ROLE {role} LOGIN", f"GRANT USAGE, CREATE ON SCHEMA perdura TO {role}")
        case.apply()
        self.addCleanup(case.dialect.run, case.store, [f"DROP OWNED BY {role}", f"DROP ROLE {role}"])

        def nearer(case, rng):
            case.put(f"SET LOCAL ROLE {role}", "SET LOCAL search_path = perdura")
            return schemas.nearer_function(case, rng)
        named, log = schemas.beside_server(case, self.rng, nearer)
        self.assertIn(f"function {named}", log)

    def test_f_j5_leadership_is_renewed_in_our_schema_whatever_code_of_others_left(self):
        """A trigger that is let through puts another table before ours in the keeper's session."""
        case = self.case()
        schemas.code_of_others(case)
        case.put("CREATE TABLE evil.leadership (LIKE leadership INCLUDING ALL)",
                 "CREATE TRIGGER t AFTER INSERT OR UPDATE ON leadership FOR EACH ROW EXECUTE FUNCTION evil.armed()")
        case.apply()
        until = "SELECT until FROM leadership"

        def renewed(client):
            first = case.rows(until)
            harness.wait_until(lambda: case.rows(until) != first, what="a renewal")
        case.serve(renewed, retention=False, config="", more="allow_changed_schema: true\nleader_lease: 2s\n")
        self.assertEqual(case.rows("SELECT holder FROM evil.leadership"), [])

    def test_d9_a_role_that_may_only_read_can_verify(self):
        case = self.case()
        role = f"auditor_{uuid.uuid4().hex[:12]}"
        case.put(f"CREATE ROLE {role} LOGIN", f"GRANT USAGE ON SCHEMA perdura TO {role}",
                 f"GRANT SELECT ON ALL TABLES IN SCHEMA perdura TO {role}")
        case.apply()
        self.addCleanup(case.dialect.run, case.store, [f"DROP OWNED BY {role}", f"DROP ROLE {role}"])
        place = urllib.parse.urlsplit(case.store)
        store = place._replace(netloc=f"{role}@{place.netloc.rpartition('@')[2]}").geturl()
        for words in (("verify", "--logs"), ("verify",)):
            done = subprocess.run([harness.binary(), *words, "--store", store], capture_output=True, text=True,
                                  cwd=case.folder, timeout=240, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_f_j5_a_level_is_written_in_one_way_only(self):
        """Another word drops the line out of searches; the constraint looks as it was afterwards."""
        case = self.case()
        execution = case.ended[0]
        level = case.runs[execution][0][1].lower()
        (name, text), = case.rows("SELECT conname, pg_get_constraintdef(oid) AS text FROM pg_constraint "
                                  "WHERE contypid = 'log_level'::regtype")
        case.put(f"ALTER DOMAIN log_level DROP CONSTRAINT {name}",
                 f"UPDATE execution_logs SET log_level = '{level}' WHERE {case.where(execution)} AND seq = 1",
                 f"ALTER DOMAIN log_level ADD CONSTRAINT {name} {text} NOT VALID",
                 "UPDATE pg_constraint SET convalidated = true WHERE contypid = 'log_level'::regtype")
        case.apply()
        self.assert_named(case, execution)

    def test_f_j5_a_table_that_refers_to_ours_runs_no_code_in_our_sessions(self):
        case = self.case()
        for changes in schemas.REFERS:
            with self.subTest(changes[-1]):
                schemas.code_of_others(case)
                case.put(*changes)
                case.apply()
                fine, text = schemas.verified(case)
                self.assertFalse(fine, text)
                self.assertIn(schemas.EVIL, text)
                case.put("DROP SCHEMA evil CASCADE")
                case.apply()
        self.assertTrue(schemas.verified(case)[0])


if __name__ == "__main__":
    unittest.main()
