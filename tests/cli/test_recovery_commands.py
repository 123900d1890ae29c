"""perdura recovery …, and what recovery means for commands as handlers: pause, partial ends and a
clean stop resume from the checkpoint (B2, B4, B5, B6, F-A18)."""
import json
import signal
import unittest

from cli_harness import NO_TASK, ServerTest, wait_until

CONFIG = r"""
grace: 20s
handlers:
  - type: polite
    command: ["sh", "-c", "trap 'echo \"{\\\"checkpoint\\\":{\\\"name\\\":\\\"told to stop\\\",\\\"progress\\\":60}}\" >&3; exit 75' TERM; if [ \"$PERDURA_CHECKPOINT\" ]; then echo \"{\\\"result\\\":\\\"from $PERDURA_CHECKPOINT\\\"}\" >&3; exit 0; fi; echo '{\"state\":\"On\"}' >&3; while :; do sleep 0.02; done"]
  - type: partly
    command: ["sh", "-c", "if [ \"$PERDURA_CHECKPOINT\" ]; then echo '{\"result\":\"all\"}' >&3; exit 0; fi; echo '{\"checkpoint\":{\"name\":\"half\",\"progress\":50,\"data\":1}}' >&3; echo '{\"partial\":\"half\"}' >&3"]
  - type: stalls
    stall_after: 4s
    command: ["sh", "-c", "if [ $PERDURA_ATTEMPT = 1 ]; then echo $$ > {folder}/stalled; exec sleep 300; fi; if kill -0 $(cat {folder}/stalled); then echo '{\"result\":\"beside\"}' >&3; exit 0; fi; i=0; while [ $i -lt 30 ]; do echo \"{\\\"progress\\\":$i}\" >&3; i=$((i+1)); sleep 0.05; done; echo '{\"result\":\"through\"}' >&3"]
"""


class Recovery(ServerTest):
    config = CONFIG
    arguments = ("--lease", "5s")

    def on(self, task_id):
        wait_until(lambda: self.task(task_id)["state"] == "On", what="the handler's start")

    def test_b4_b5_b6_a_partial_task_is_found_validated_and_recovered(self):
        task_id = self.enqueue("partly", recovery_priority=3)["id"]
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"]), ("partial", "half"))
        lines = self.perdura("recovery", "candidates").stdout.splitlines()
        self.assertRegex(lines[1], rf"{task_id}.*partly.*partial")
        [found] = json.loads(self.perdura("recovery", "candidates", "--json").stdout)["items"]
        self.assertEqual((found["id"], found["recovery_priority"]), (task_id, 3))
        self.assertIn("can be recovered", self.perdura("recovery", "validate", task_id).stdout)
        made = json.loads(self.perdura("recovery", "run", "--priority", "5", "--json",
                                       task_id).stdout)
        self.assertEqual((made["task_id"], made["recovery_priority"]), (task_id, 5))
        task = self.wait_status(task_id, "completed")
        self.assertEqual((task["result"], task["resumed_from"]), ("all", "half"))
        lines = self.perdura("recovery", "list", "--task", task_id).stdout.splitlines()
        self.assertRegex(lines[1], rf"{made['id']}.*{task_id}.*resume_checkpoint.*completed")
        self.assertEqual(json.loads(self.perdura("recovery", "list", "--status", "failed",
                                                 "--json").stdout)["items"], [])
        done = self.perdura("recovery", "validate", task_id, code=1)
        self.assertIn("cannot be recovered: already_completed", done.stdout)
        verdict = json.loads(self.perdura("recovery", "validate", task_id, "--json", code=1).stdout)
        self.assertEqual(verdict["reason"], "already_completed")

    def test_b4_a_stalled_task_that_the_same_pool_claims_again_runs_through(self):
        """F-A19, F-I3: the second attempt begins when the first has stopped, and is not stopped with it."""
        task = self.wait_ended(self.enqueue("stalls")["id"])
        self.assertEqual((task["status"], task["attempts"], task["result"], task["last_error"]),
                         ("completed", 2, "through", "stalled"))

    def test_b2_b7_a_partial_task_is_recovered_at_once_by_task_recover(self):
        task_id = self.enqueue("partly")["id"]
        self.assertEqual(self.wait_ended(task_id)["status"], "partial")
        self.refused(1, "task", "recover", "--if-version", "1", task_id)
        noted = self.perdura("task", "recover", "--method", "validate_only", task_id)
        self.assertEqual(noted.stdout, f"{task_id} partial\n")
        self.perdura("task", "recover", task_id)
        task = self.wait_status(task_id, "completed")
        self.assertEqual((task["result"], task["resumed_from"]), ("all", "half"))
        entries = self.expect(200, "GET", f"/v1/recovery?task_id={task_id}")["items"]
        self.assertEqual([entry["recovery_method"] for entry in entries],
                         ["resume_checkpoint", "validate_only"])
        self.assertIn("completed", self.refused(1, "task", "recover", task_id))

    def test_refusals_say_what_to_do(self):
        self.refused(3, "task", "recover", NO_TASK)
        self.refused(2, "task", "recover", "--method", "magic", NO_TASK)
        self.perdura("recovery", "validate", NO_TASK, code=3)
        self.refused(3, "recovery", "run", NO_TASK)
        self.refused(3, "recovery", "run", "nothing")
        self.refused(2, "recovery", "run", "--method", "magic", NO_TASK)
        self.refused(2, "recovery", "run")

    def test_b2_a_command_is_paused_through_its_checkpoint_and_resumed(self):
        task_id = self.enqueue("polite")["id"]
        self.on(task_id)
        self.perdura("task", "pause", task_id)
        task = self.wait_status(task_id, "paused")
        self.assertEqual((task["checkpoint_data"]["name"], task["retry_count"],
                          task["crash_count"]), ("told to stop", 0, 0))
        self.perdura("task", "resume", task_id)
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"]), ("completed", "from told to stop"))

    def test_f_a18_a_clean_stop_checkpoints_and_gives_back_without_an_attempt(self):
        task_id = self.enqueue("polite", max_retries=0, max_crashes=1)["id"]
        self.on(task_id)
        self.restart(signal.SIGTERM)
        task = self.wait_ended(task_id)
        self.assertEqual((task["status"], task["result"]), ("completed", "from told to stop"))
        self.assertEqual((task["retry_count"], task["crash_count"], task["attempts"]), (0, 0, 1))
        self.assertEqual(self.expect(200, "GET", "/v1/recovery")["items"], [])  # nothing was lost


if __name__ == "__main__":
    unittest.main()
