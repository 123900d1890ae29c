"""Tests about the logs of a store that somebody writes to who has every right but the log key (F-J5,
F-J8, D9): what he adds is never believed, what he makes old stays. The same on every store; a class
of tests names the dialect."""
import json
import random
import uuid

import forger
import forgeries
import schemas

ROUNDS = 4


class ForgeryCases:
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
        self.assertTrue(any("did not sign" in finding["detail"] for finding in report["findings"]))

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
        """As one from before there was a key; without an anchor file nobody can know better."""
        case = self.case()
        case.put("DELETE FROM log_anchors", "DELETE FROM log_heads",
                 "DELETE FROM store_info WHERE name = 'log_public_key'")
        case.apply()
        open(case.folder + "/anchor", "w", encoding="utf-8").close()
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

    def test_f_j5_random_attacks_are_found(self):
        row = {"attacks": 0, "found": 0, "untouched": 0, "kinds": {}, "findings": []}
        rng = random.Random(f"{self.stand.dialect.name} sample")
        forgeries.untouched(self.stand, row)
        for _ in range(ROUNDS):
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
