"""Tests about the logs of a store that an attacker writes to who has every right but the log key
(F-J5, F-J8, D9): added lines are never believed, lines made old stay. The same on every store; a
class of tests names the dialect."""
import json
import pathlib
import random
import subprocess
import uuid
from unittest import mock

import forger
import forgeries
import forgery_dark
import harness
import schemas

class ForgeryCases:
    rounds = 4  # of random attacks; the campaign has thousands

    @classmethod
    def make_stand(cls, dialect):
        cls.rng = random.Random(7)
        cls.stand = forger.Stand(dialect, cls.rng)
        cls.addClassCleanup(cls.stand.close)

    def case(self):
        case = forger.Case(self.stand)
        self.addCleanup(case.close)
        return case

    def assert_named(self, case, execution, when=""):
        report = case.verify()
        told = [finding.get("execution_id") for finding in report["findings"]]
        self.assertIn(str(uuid.UUID(execution)), told, f"{when}: {report}")
        return report

    def served(self, case, execution):
        """Named before a server with the key has seen it, and never signed by that."""
        case.apply()
        self.assert_named(case, execution, "at once")
        log = case.serve(forgeries.goes_on(case))
        report = self.assert_named(case, execution, "after a server")
        case.serve()
        self.assert_named(case, execution, "after another start")
        return log, report

    def test_f_j5_a_backdated_line_of_an_ended_run_is_never_signed(self):
        case = self.case()
        execution = case.ended[3]
        forgeries.append_and_wait(case, execution, self.rng)
        log, _ = self.served(case, execution)
        self.assertIn("log.forged", log)

    def test_f_j5_lines_of_a_run_that_had_none_are_never_signed(self):
        case = self.case()
        execution = case.silent[0]
        lines = [(0, "INFO", "all is well", None, case.now - forgeries.HOUR_US + i) for i in range(3)]
        chained = case.write(execution, lines)
        case.note(execution, 3, chained, 3, lines[-1][4])
        log, report = self.served(case, execution)
        self.assertIn("log.forged", log)
        self.assertTrue(any("refused to sign" in finding["detail"] for finding in report["findings"]))

    def test_f_j5_lines_without_a_hash_are_named_whatever_the_store_says_of_its_age(self):
        case = self.case()
        forgeries.append_without_hash(case, case.ended[0], self.rng)
        case.insert(case.silent[1], 1, "INFO", "all is well", None, case.now, None)
        self.served(case, case.ended[0])
        self.assert_named(case, case.silent[1])

    def test_f_j8_a_task_that_was_made_old_keeps_its_logs(self):
        case = self.case()
        executions = case.ended[:4]
        for execution in executions:
            forgeries.age_task(case, execution, self.rng)
        case.apply()
        log = case.serve()
        self.assertIn("log.forged", log)
        for execution in executions:
            self.assertTrue(case.kept(execution), execution)
        self.assertTrue(case.verify()["ok"])

    def test_f_j8_a_store_that_says_it_is_later_keeps_its_logs(self):
        case = self.case()
        forgeries.age_clock(case, case.ended[0], self.rng)
        case.apply()
        case.serve(retention=False)
        for execution in case.ended:
            self.assertTrue(case.kept(execution), execution)
        self.assertTrue(case.verify()["ok"])

    def test_f_j8_a_namespace_goes_with_its_logs_only_when_a_request_said_so(self):
        """A row that says it is enough for all else; so is `default`, which no request can delete."""
        case = self.case()
        forgeries.delete_namespace(case, case.ended[0], self.rng)
        case.apply()
        acme = {"Perdura-Namespace": "acme"}

        def during(client):
            client.expect(201, "POST", "/v1/namespaces", {"name": "acme"})
            self.in_namespace(client, acme, 2)
            client.expect(202, "DELETE", "/v1/namespaces/acme?purge=true")
            harness.wait_until(lambda: client.request("GET", "/v1/namespaces/acme").status == 404,
                               what="a deleted namespace")
        log = case.serve(during, retention=False, config="")
        self.assertIn("namespace.mark_refused", log)
        for execution in case.ended:
            self.assertTrue(case.kept(execution), execution)
        self.assertEqual(case.rows("SELECT count(*) AS n FROM execution_logs"),
                         [[sum(map(len, case.runs.values()))]])
        self.assertTrue(case.verify("--audit")["ok"])

    def test_f_j8_a_namespace_keeps_logs_as_long_as_a_request_said(self):
        """Its own windows count for tasks with lines, and no row makes them shorter."""
        case = self.case()
        forgeries.short_namespace(case, case.ended[0], self.rng)
        case.apply()
        acme, ids = {"Perdura-Namespace": "acme"}, []

        def during(client):
            client.expect(201, "POST", "/v1/namespaces",
                          {"name": "acme", "retention": {"completed_ms": 1}})
            ids.extend(self.in_namespace(client, acme, 2))
            harness.wait_until(lambda: case.rows("SELECT count(*) AS n FROM log_heads WHERE closed = ''") ==
                               [[forger.HELD]], what="the end of both")
        case.serve(during, retention=False, config="")
        case.serve(lambda client: harness.wait_until(lambda: all(
            client.request("GET", f"/v1/tasks/{one}", None, acme).status == 404 for one in ids),
            what="retention"), retention=False, config="")
        self.assertTrue(case.kept(case.ended[0]))
        self.assertTrue(case.verify()["ok"])

    def in_namespace(self, client, headers, count):
        """Runs with a line each."""
        client.expect(201, "POST", "/v1/workers", {"id": "worker-2", "hostname": "host", "pool_size": 4,
                                                   "queues": ["default"], "version": "1"}, headers)
        ids = []
        for number in range(count):
            client.expect(201, "POST", "/v1/tasks", {"type": f"own{number}"}, headers)
            task = client.expect(200, "POST", "/v1/workers/worker-2:claim", {"max": 1}, headers)["tasks"][0]
            client.expect(200, "POST", "/v1/workers/worker-2:report", [
                client.element(task, "log", level="INFO", message="here"), client.element(task, "complete")], headers)
            ids.append(task["id"])
        return ids

    def retype(self, case, task_id):
        """Its row names another type, whose logs go at once."""
        case.put("UPDATE lanes SET type = 'short' WHERE lane = (SELECT lane FROM task_states WHERE id = "
                 f"{case.uid(task_id)})")
        case.apply()

    def test_f_j8_a_run_does_not_continue_under_another_type(self):
        case = self.case()
        execution = case.held[0]
        self.retype(case, case.tasks[execution])
        self.assertIn("log.forged", case.serve(forgeries.goes_on(case)))
        self.assertGreaterEqual(len(forgery_dark.lines_of(case, execution)), len(case.runs[execution]))
        self.assertIn("refused", str(self.assert_named(case, execution)["findings"]))

    def test_f_j8_a_later_run_under_another_type_takes_no_earlier_one_along(self):
        """The task stays as long as its runs do not agree about its type."""
        case = self.case()
        ids = []

        def fails(client):
            ids.append(client.enqueue("twice", max_retries=1, retry_delay_ms=0)["id"])
            task = client.claim()[0]
            client.say(task, "ERROR", "the proof")
            client.report_ok("worker-1", task, "fail", error="no")

        def completes(client):
            task = client.claim()[0]
            client.say(task, "INFO", "all is well")
            client.complete("worker-1", task)
            harness.wait_until(lambda: case.rows("SELECT count(*) AS n FROM log_heads WHERE closed = ''") ==
                               [[forger.HELD]], what="its end")
        case.serve(fails, retention=False, config="")
        self.retype(case, uuid.UUID(ids[0]).hex)
        case.serve(completes, retention=False, config="")
        case.serve(lambda client: harness.wait_until(lambda: "log.forged" in client.server.log(), what="retention"),
                   retention=False, config="""handlers:
  - {type: short, command: ["true"], retention: 1ms}
""")
        self.assertEqual([row for row in case.rows("SELECT message FROM execution_logs WHERE message = "
                                                   "'the proof'")], [["the proof"]])
        self.assertTrue(case.verify()["ok"])

    def test_f_j5_a_run_under_way_does_not_go_on_from_a_line_that_was_put_there(self):
        case = self.case()
        execution = case.held[0]
        forgeries.append_without_note(case, execution, self.rng)
        log, _ = self.served(case, execution)
        self.assertIn("log.forged", log)

    def test_f_j5_an_ended_run_is_closed(self):
        """Every run that ended is, in the records; the others are not."""
        case = self.case()
        closed = set()
        for text, in case.rows("SELECT record FROM log_anchors"):
            closed |= {uuid.UUID(item[0]).hex for item in json.loads(text)["items"]
                       if "closed" in item}
        self.assertTrue(closed.issuperset(case.ended))
        self.assertFalse(closed.intersection(case.held))

    def test_d9_a_store_that_names_another_key_is_signed_with_its_own(self):
        case = self.case()
        case.put(f"UPDATE store_info SET value = '{'ab' * 32}' WHERE name = 'log_public_key'")
        case.apply()
        case.serve(forgeries.goes_on(case))
        report = case.verify()
        self.assertTrue(report["ok"], report)
        self.assertEqual(report["public_key"], self.stand.public_key)
        self.assertNotIn("log lines from before the key", report["checked"])

    def test_d9_a_store_without_records_is_adopted_once_and_in_the_open(self):
        """As one from before there was a key; without an anchor file there is no way to know
        better."""
        case = self.case()
        case.forget_records()
        case.apply()
        case.serve(forgeries.goes_on(case), retention=False)
        report = case.verify()
        self.assertTrue(report["ok"], report)
        self.assertGreater(report["checked"]["log lines from before the key"], 50)
        execution = case.silent[2]
        lines = [(0, "INFO", "all is well", None, case.now + 60000000)]
        case.note(execution, 1, case.write(execution, lines), 1, lines[0][4])
        case.apply()
        case.serve(retention=False)
        self.assert_named(case, execution)

    def test_d9_what_a_key_adopts_keeps_its_namespace(self):
        """Whose windows it has."""
        case = self.case()

        def during(client):
            client.expect(201, "POST", "/v1/namespaces", {"name": "acme"})
            self.in_namespace(client, {"Perdura-Namespace": "acme"}, 1)
        case.serve(during, retention=False, config="")
        before = case.rows("SELECT task_type FROM log_heads WHERE task_type LIKE '%own0'")
        case.forget_records()
        case.apply()
        case.serve(retention=False, config="")
        self.assertEqual(case.rows("SELECT task_type FROM log_heads WHERE task_type LIKE '%own0'"), before)
        self.assertEqual(before, [["acme\x1eown0"]])

    def test_f_j5_what_a_key_found_is_signed_and_no_time_makes_lines_pass_for_older(self):
        """Lines that say they are from before the key, in runs from before it."""
        case = self.case()
        case.forget_records()
        case.apply()
        case.serve(forgeries.goes_on(case), retention=False)
        case.load()
        changed, removed, added, plain = case.ended[1], case.ended[2], case.silent[3], case.silent[4]
        old = case.now - forgeries.HOUR_US
        lines = list(case.runs[changed])
        lines[0] = lines[0][:2] + ("it was well",) + lines[0][3:]
        case.write(changed, lines)
        case.write(removed, case.runs[removed][:-1])
        case.write(added, [(0, "INFO", "all is well", None, old)])
        case.insert(plain, 1, "INFO", "all is well", None, old, None)
        for execution in (changed, removed, added):
            case.put(f"DELETE FROM log_heads WHERE {case.where(execution)}")
        self.served(case, changed)
        for execution in (removed, added, plain):
            self.assert_named(case, execution)

    def test_f_j8_an_unsigned_record_of_old_makes_no_line_old(self):
        """Put in the place of one from before the key while a server runs, and taken back then."""
        case = self.case()
        case.forget_records()
        case.unsigned_record(1, "2020-01-01T00:00:00.000000Z", [])
        case.apply()
        case.serve(lambda client: [client.say(task, "DEBUG", "the proof") for task in self.stand.held],
                   retention=False, config="")
        case.load()
        execution = case.held[1]
        self.assertEqual(case.runs[execution][-1][1], "DEBUG")
        case.unsigned_record(1, "2020-01-01T00:00:00.000000Z", [
            [str(uuid.UUID(held)), len(case.runs[held]), "00" * 32, len(case.runs[held])]
            for held in case.held + case.ended])
        case.apply()
        case.serve(config="  log_levels: {debug: 1h}\n")
        stored = case.rows("SELECT message FROM execution_logs WHERE log_level = 'DEBUG'")
        self.assertNotIn([""], stored)
        self.assertTrue(case.kept(execution))

    def test_f_j5_what_is_shown_beside_a_line_is_in_its_hash(self):
        case = self.case()
        attacks = (forgeries.change_beside, forgeries.change_correlation, forgeries.change_line_id)
        for attack, execution in zip(attacks, case.ended):
            attack(case, execution, self.rng)
        self.served(case, case.ended[0])
        for execution in case.ended[1:3]:
            self.assert_named(case, execution)

    def test_f_j5_lines_of_a_run_are_not_shown_as_those_of_another_task(self):
        """By a second row that names it."""
        case = self.case()
        execution, other = case.ended[0], case.tasks[case.silent[0]]
        case.put("INSERT INTO execution_rows (execution, id, task, status, attempt_number, lease_token, "
                 "claim_seq, created_at) SELECT (SELECT max(execution) + 1 FROM execution_rows), e.id, "
                 f"(SELECT task FROM task_states WHERE id = {case.uid(other)}), e.status, 1, 1, 1, "
                 f"e.created_at FROM execution_rows e WHERE e.id = {case.uid(execution)}")
        case.apply()
        shown = {}

        def look(client):
            for task in (other, case.tasks[execution]):
                page = client.expect(200, "GET", f"/v1/tasks/{uuid.UUID(task)}/logs")
                shown[task] = [line["message"] for line in page["items"]]
        case.serve(look, retention=False, config="")
        self.assertEqual(shown[other], [])
        self.assertEqual(len(shown[case.tasks[execution]]), len(case.runs[execution]))

    def break_lines(self, case, execution, how):
        """Before its last line and the note of that, which stay as they were."""
        where = case.where(execution)
        case.put({"changed": f"UPDATE execution_logs SET message = 'it was well' WHERE {where} AND "
                             "seq = 2",
                  "one gone": f"DELETE FROM execution_logs WHERE {where} AND seq = 2",
                  "first gone": f"DELETE FROM execution_logs WHERE {where} AND seq <= 2"}[how])

    def longest(self, case, count):
        return sorted(case.ended, key=lambda execution: -len(case.runs[execution]))[:count]

    def test_f_j8_no_cut_is_signed_over_lines_that_were_changed_or_removed_before(self):
        """A user deletes the tasks, not knowing."""
        case = self.case()
        executions = self.longest(case, 3)
        for execution, how in zip(executions, ("changed", "one gone", "first gone")):
            self.break_lines(case, execution, how)
            case.deleted.append(str(uuid.UUID(case.tasks[execution])))
        untouched = self.longest(case, 4)[3]
        case.deleted.append(str(uuid.UUID(case.tasks[untouched])))
        case.apply()
        log = case.serve(forgeries.goes_on(case), retention=False)
        self.assertIn("log.forged", log)
        for execution in executions + [untouched]:
            self.assertEqual(case.rows(f"SELECT 1 AS one FROM execution_logs WHERE "
                                       f"{case.where(execution)}"), [])
        report = case.verify()
        told = {finding.get("execution_id") for finding in report["findings"]}
        self.assertEqual(told, {str(uuid.UUID(execution)) for execution in executions}, report)

    def test_f_j8_retention_leaves_lines_that_were_changed_or_removed_before(self):
        """With their tasks, and by themselves."""
        for window in ("completed: 30d\n  failed", "logs"):
            config = forger.CONFIG.replace(f"{window}: 30d", f"{window}: 1s".replace("30d", "1s"))
            case = self.case()
            broken = self.longest(case, 3)
            for execution, how in zip(broken, ("changed", "one gone", "first gone")):
                self.break_lines(case, execution, how)
            case.apply()
            left = {execution: case.rows(f"SELECT seq FROM execution_logs WHERE "
                                         f"{case.where(execution)}") for execution in broken}
            others = [execution for execution in case.ended if execution not in broken]

            def gone():
                return all(not case.rows(f"SELECT 1 AS one FROM execution_logs WHERE "
                                         f"{case.where(execution)}") for execution in others)
            with mock.patch.object(forger, "CONFIG", config):
                log = case.serve(lambda client: harness.wait_until(gone, what="retention"),
                                 retention=False, config="")
            self.assertIn("log.forged", log)
            for execution in broken:
                self.assertEqual(case.rows(f"SELECT seq FROM execution_logs WHERE "
                                           f"{case.where(execution)}"), left[execution], window)
            report = case.verify()
            told = {finding.get("execution_id") for finding in report["findings"]}
            self.assertEqual(told, {str(uuid.UUID(execution)) for execution in broken}, report)

    def test_f_j8_a_run_that_is_closed_once_more_is_named(self):
        """By a note of the server's own from before its end, and with rows that say how it ended."""
        case = self.case()
        execution = case.held[0]
        task = next(held for held in self.stand.held
                    if uuid.UUID(held["id"]).hex == case.tasks[execution])
        where = case.where(execution)

        def closed():
            return case.rows(f"SELECT closed FROM log_heads WHERE {where}") not in ([], [[""]])

        def fail(client):
            client.report_ok("worker-1", task, "fail", error="no", retryable=False)
            harness.wait_until(closed, what="the end of the run")
        case.serve(fail, retention=False, config="")
        self.assertTrue(case.verify()["ok"])
        old = case.notes[execution]
        case.note(execution, old[1], old[2], old[3], old[6], old[7], old[8])
        case.put("UPDATE execution_rows SET status = 'completed' WHERE id = " + case.uid(execution))
        case.apply()
        case.serve(lambda client: harness.wait_until(closed, what="another end"), retention=False,
                   config="")
        self.assert_named(case, execution, "closed once more")
        case.deleted.append(task["id"])
        case.serve(forgeries.goes_on(case), retention=False, config="")
        self.assertEqual(case.rows(f"SELECT 1 AS one FROM execution_logs WHERE {where}"), [])
        self.assert_named(case, execution, "after its lines are gone")

    def test_f_j8_a_run_that_was_set_back_is_named_when_its_lines_are_gone(self):
        """Other lines took the numbers of those that a record had named; then its task is deleted."""
        case = self.case()
        execution = case.held[0]
        forgeries.set_back_and_end(case, execution, self.rng)
        case.apply()
        case.serve(forgeries.goes_on(case), retention=False, config="")
        self.assertEqual(case.rows(f"SELECT 1 AS one FROM execution_logs WHERE {case.where(execution)}"),
                         [])
        self.assert_named(case, execution)

    def in_the_dark(self, how, to_begin=False, every="1h"):
        """With records every hour he needs no luck to keep notes out of them."""
        case = self.case()
        execution = case.held[0]
        forgery_dark.set_back(case, execution, to_begin)
        case.apply()
        self.assert_named(case, execution, "at once")

        def during(client):
            forgery_dark.finish(case, client, forgery_dark.begin(case, client, execution), how)
        case.serve(during, retention=False, config="", every=every)
        self.assertEqual(forgery_dark.lines_of(case, execution), [])
        self.assert_named(case, execution, how.__name__)

    def test_f_j8_a_run_that_continued_while_no_record_saw_it_is_named_when_it_is_deleted(self):
        """From an earlier note of the server's own, or from nothing; whatever notes are shown when
        its task is deleted."""
        for how in forgery_dark.ENDS:
            every = "100ms" if how in (forgery_dark.last_note_only, forgery_dark.closed) else "1h"
            with self.subTest(how.__name__):
                self.in_the_dark(how, every=every)
        self.in_the_dark(forgery_dark.deleted, to_begin=True)

    def test_f_j5_lines_that_go_before_a_record_names_them_are_named(self):
        """The server remembers what it wrote, signs that, and continues from nothing earlier."""
        for how in forgery_dark.TAKE_BACK:
            with self.subTest(how.__name__):
                case = self.case()
                execution = case.held[0]
                log = case.serve(lambda client: how(case, client, execution), retention=False,
                                 config="", every="1h")
                if how is not forgery_dark.take_back or self.stand.dialect.name == "sqlite":
                    self.assertIn("log.forged", log)  # another node may have removed them in order
                self.assert_named(case, execution, how.__name__)

    def test_f_j5_lines_that_are_not_signed_cannot_go_unseen(self):
        """He has the server doubt what they follow, or has it drop them, and removes all of it."""
        for how in forgery_dark.UNSIGNED + (forgery_dark.closed_early,):
            with self.subTest(how.__name__):
                case = self.case()
                execution = case.held[0]
                log = case.serve(lambda client: how(case, client, execution), retention=False, config="")
                self.assertIn("log.forged", log)
                report = self.assert_named(case, execution, how.__name__)
                self.assertIn("refused", str(report["findings"]))
                case.serve(retention=False, config="")
                self.assert_named(case, execution, "after another start")

    def test_f_j5_what_a_record_names_by_memory_alone_is_not_continued_from_an_earlier_line(self):
        """Lines go, the server signs that they were there, and only then the run continues and
        ends."""
        case = self.case()
        execution = case.held[0]

        def written():
            return any('"written"' in text and str(uuid.UUID(execution)) in text
                       for text, in case.rows(f"SELECT record FROM log_anchors WHERE serial > {first}"))
        first = case.rows("SELECT max(serial) AS serial FROM log_anchors")[0][0]

        def during(client):
            newest = [["no"]]
            for _ in range(20):  # right behind a record, so that the next one comes too late
                client.say(forgery_dark.task_of(case, case.held[1]), "INFO", "tick")
                forgery_dark.wait_settled(case)
                newest = case.rows("SELECT max(serial) AS serial FROM log_anchors")
                forgery_dark.take_back(case, client, execution)
                if newest == case.rows("SELECT max(serial) AS serial FROM log_anchors"):
                    break
            harness.wait_until(written, what="a record by memory")
            for text in ("all is well", "as it was before", "and on", "to the end"):
                forgery_dark.say_openly(case, client, execution, text)
            forgery_dark.wait_settled(case)
            forgery_dark.end(case, client, execution)
            client.request("DELETE", f"/v1/tasks/{forgery_dark.task_of(case, execution)['id']}")
        case.serve(during, retention=False, config="", every="2s")
        self.assertEqual(forgery_dark.lines_of(case, execution), [])
        self.assert_named(case, execution)

    def test_f_j5_what_a_record_names_by_memory_alone_is_missed_for_ever(self):
        """Also by a server that began after it, when other lines had its numbers and are gone; and
        where a later line made it look as if the run had continued."""
        for behind in (False, True):
            with self.subTest(behind=behind):
                case = self.case()
                execution = case.held[0]
                case.serve(lambda client, case=case, execution=execution, behind=behind:
                           forgery_dark.take_back_and_restart(case, client, execution, behind),
                           retention=False, config="", every="2s")
                self.assertEqual(forgery_dark.lines_of(case, execution), [])
                report = self.assert_named(case, execution)
                self.assertIn("removed before a record named them", str(report["findings"]))

    def test_f_j6_a_record_that_goes_before_the_anchor_file_has_it_is_missed(self):
        """The file cannot be written for a while; the newest record goes with the lines it names, also
        where he leaves a row of his own behind it until the server has ended."""
        for behind in (0, 1, 2 ** 62):
            with self.subTest(behind=behind):
                case = self.case()
                case.serve(lambda client, case=case, behind=behind: forgery_dark.without_newest_record(
                    case, client, case.held[0], behind), retention=False, config="")
                case.put(f"DELETE FROM log_anchors WHERE record = '{forgery_dark.NO_RECORD}'")
                case.apply()
                report = case.verify()
                self.assertIn("newest record of the store was missing", str(report["findings"]), report)

    def test_f_j5_a_run_whose_lines_are_all_gone_does_not_begin_again(self):
        """All that no record names yet; it then says more than it had said."""
        case = self.case()
        runs = []

        def during(client):
            client.enqueue("fresh")
            task = client.claim()[0]
            for _ in range(3):
                client.say(task, "ERROR", "the proof")
            runs.append(case.rows("SELECT execution_id FROM execution_logs ORDER BY execution_id DESC "
                                  "LIMIT 1")[0][0])
            case.put(f"DELETE FROM execution_logs WHERE {case.where(runs[0])}",
                     f"DELETE FROM log_heads WHERE {case.where(runs[0])}")
            case.apply()
            for _ in range(4):
                client.say(task, "INFO", "all is well")
        case.serve(during, retention=False, config="", every="1h")
        self.assert_named(case, runs[0])

    def test_d9_runs_that_are_deleted_while_records_are_made_raise_no_alarm(self):
        case = self.case()

        def during(client):
            for number in range(150):
                task = client.logged(f"quick{number}", 1, self.rng)
                client.expect(204, "DELETE", f"/v1/tasks/{task['id']}")
        log = case.serve(during, retention=False, config="")
        self.assertNotIn("log.forged", log)
        self.assertTrue(case.verify("--audit")["ok"])

    def test_f_j7_a_start_compares_the_record_and_not_the_hash_beside_it(self):
        case = self.case()
        case.put("UPDATE log_anchors SET record = replace(record, '\"kind\"', '\"kinds\"') WHERE serial = "
                 "(SELECT max(serial) FROM log_anchors)")
        case.apply()
        self.assertIn("log.regression", case.serve(retention=False, config=""))

    def test_d18_an_audit_entry_that_goes_before_its_record_is_named(self):
        """The server remembers it and signs it; no word of the store keeps it from that."""
        for hide in (False, True):
            case = self.case()

            def during(client, case=case, hide=hide):
                client.expect(200, "PATCH", "/v1/queues/default", {"concurrency": 7})
                newest = case.rows("SELECT max(seq) AS seq FROM audit_log")[0][0]
                case.put("UPDATE log_heads SET seq = seq + 1 WHERE closed = 'named'" if hide else
                         f"DELETE FROM audit_log WHERE seq = {newest}")
                case.apply()
            case.serve(during, retention=False, config="", every="1h")
            if hide:
                newest = case.rows("SELECT max(seq) AS seq FROM audit_log")[0][0]
                case.put(f"DELETE FROM audit_log WHERE seq = {newest}")
                case.apply()
            kinds = [finding["kind"] for finding in case.verify("--audit")["findings"]]
            self.assertIn("audit", kinds, hide)

    def test_f_j8_an_old_note_over_a_restart_is_named(self):
        case = self.case()
        execution = case.held[0]
        forgery_dark.set_back(case, execution)
        case.apply()
        dark = []
        case.serve(lambda client: dark.append(forgery_dark.begin(case, client, execution)),
                   retention=False, config="", every="1h")
        case.serve(lambda client: forgery_dark.finish(case, client, dark[0], forgery_dark.deleted),
                   retention=False, config="", every="1h")
        self.assertEqual(forgery_dark.lines_of(case, execution), [])
        self.assert_named(case, execution)

    def test_f_j8_an_old_note_is_named_when_retention_removes_the_lines(self):
        """By type: it follows the records, which name other lines than are there."""
        case = self.case()
        execution = case.held[0]
        forgery_dark.set_back(case, execution)
        case.apply()

        dark = []

        def continues(client):
            dark.append(forgery_dark.begin(case, client, execution))
            forgery_dark.end(case, client, execution)
        case.serve(continues, retention=False, config="", every="1h")
        dark[0].show()
        case.serve(lambda client: harness.wait_until(
            lambda: not forgery_dark.lines_of(case, execution) or "log.forged" in client.server.log(),
            what="retention"), config="""  log_levels: {debug: 1ms}
handlers:
  - {type: "held*", command: ["true"], retention_logs: 1ms}
""")
        self.assert_named(case, execution)

    def test_d9_a_store_from_before_notes_said_what_they_follow_continues(self):
        """It migrates, runs under way continue in it, end and go, and nothing is a finding; but a run
        that is set back to a note from before is."""
        case = self.case()
        listed = subprocess.run([harness.binary(), "migrate", "status", "--json", "--store", case.store],
                                check=True, capture_output=True)
        links = next(item["number"] for item in json.loads(listed.stdout)["items"]
                     if item["name"] == "log links")
        subprocess.run([harness.binary(), "migrate", "down", "--lose-data", "--to", str(links - 1),
                        "--store", case.store], check=True, capture_output=True)
        self.assertTrue(all("from_hash" not in row for row in case.rows(case.dialect.columns("log_heads"))))
        last, set_back = self.stand.held[0], case.held[1]

        def during(client):
            for text in ("first", "second"):
                client.say(last, "INFO", text)
                forgery_dark.wait_settled(case)
            client.complete("worker-1", last)
            client.expect(204, "DELETE", f"/v1/tasks/{last['id']}")
        case.serve(during, retention=False, config="")
        found = case.verify()["findings"]  # the way down took the audit trail with it, which is named
        self.assertEqual([finding for finding in found if finding["kind"] != "audit"], [])
        forgery_dark.set_back(case, set_back)
        case.apply()
        case.serve(lambda client: forgery_dark.in_the_dark(forgery_dark.deleted)(case, client, set_back),
                   retention=False, config="", every="1h")
        self.assertEqual(forgery_dark.lines_of(case, set_back), [])
        self.assert_named(case, set_back)

    def test_f_j5_no_forged_note_makes_a_record_that_cannot_be_read(self):
        """With numbers below none, beside a good note: the sums of a run, or what stands behind it."""
        case = self.case()
        first = min(case.held)
        forgeries.note_of_nothing(case, case.ended[0], self.rng)
        case.put("INSERT INTO log_heads (execution_id, seq, chain_hash, lines) VALUES "
                 f"({case.uid(first)}, 0, '{'00' * 32}', -100)")
        case.apply()

        def end_all(client):
            for task in self.stand.held:
                client.complete("worker-1", task)
            harness.wait_until(lambda: case.rows("SELECT count(*) AS n FROM log_heads WHERE closed = "
                                                 "''") == [[0]], what="the end of all runs")
        case.serve(end_all, retention=False, config="")
        items = [item for text, in case.rows("SELECT record FROM log_anchors")
                 for item in json.loads(text)["items"]]
        self.assertEqual([item for item in items if item[1] < 0 or (len(item) > 3 and item[3] < 0)], [])
        self.assert_named(case, case.ended[0])  # the note was refused
        last = max(case.held)
        forgeries.remove_all(case, last, self.rng)
        case.apply()
        self.assert_named(case, last)

    def test_f_j7_no_row_of_others_gets_into_the_anchor_file(self):
        """A copy of a good record under a serial far ahead: what comes is below it."""
        case = self.case()
        columns = "record, record_hash, signature, created_at"
        anchor = pathlib.Path(case.folder, "anchor")

        def last_serial():
            return json.loads(anchor.read_text().splitlines()[-1])["record"]["serial"]

        def strike(client):
            before = anchor.read_text()
            case.put(f"INSERT INTO log_anchors (serial, {columns}) SELECT 1000000, {columns} FROM "
                     "log_anchors ORDER BY serial DESC LIMIT 1")
            case.apply()
            harness.wait_until(lambda: "log.foreign_records" in client.server.log(), what="a look")
            self.assertEqual(anchor.read_text(), before)
            case.put("DELETE FROM log_anchors WHERE serial = 1000000")
            case.apply()
            for task in self.stand.held:
                client.say(task, "INFO", "and on")
            harness.wait_until(lambda: self.stand.settled(case.store) and [[last_serial()]] == case.rows(
                "SELECT max(serial) AS serial FROM log_anchors"), what="records in the file")
        case.serve(strike, retention=False, config="")
        self.assertTrue(case.verify()["ok"])

    def test_f_j5_random_attacks_are_found(self):
        row = {"attacks": 0, "found": 0, "untouched": 0, "kinds": {}, "findings": []}
        rng = random.Random(f"{self.stand.dialect.name} sample")
        forgeries.untouched(self.stand, row)
        for _ in range(self.rounds):
            forgeries.one_round(self.stand, rng, row)
        self.assertEqual(row["findings"], [])
        self.assertEqual(row["found"], row["attacks"])

    def test_f_j8_triggers_have_no_lines_of_another_task_removed_and_signed(self):
        """Where a changed schema is let through; what was checked is what is removed and signed."""
        case = self.case()
        victim, other = case.ended[1], case.ended[6]
        schemas.moved_while_deleted(case, victim, other)
        self.assertEqual(case.rows(f"SELECT 1 AS one FROM execution_logs WHERE {case.where(other)}"), [])
        if not case.kept(victim):
            self.assert_named(case, victim)

    def test_f_j5_a_changed_schema_is_named_and_not_served(self):
        row = {"attacks": 0, "found": 0, "untouched": 0, "kinds": {}, "findings": []}
        schemas.untouched(self.stand, row)
        for attack in self.changes:
            schemas.one_attack(self.stand, attack, random.Random(attack.__name__), row)
        self.assertEqual(row["findings"], [])
        self.assertEqual(row["found"], len(self.changes))
