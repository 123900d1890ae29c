"""GET /v1/workflows/{id}: tasks that belong together, found from any of them."""
import unittest

from harness import ApiTest


class WorkflowTest(ApiTest):
    def graph(self, name, query=""):
        reply = self.expect(200, "GET", f"/v1/workflows/{name}{query}")
        return {task["id"]: task for task in reply["items"]}, reply

    def diamond(self, **fields):
        tasks = [{"type": "a", "ref": "a"}, {"type": "b", "ref": "b", "depends_on": [{"ref": "a"}]},
                 {"type": "c", "ref": "c", "depends_on": [{"ref": "a", "type": "completion"}]},
                 {"type": "d", "depends_on": [{"ref": "b"}, {"ref": "c"}]}]
        items = self.expect(201, "POST", "/v1/tasks", [{**t, **fields} for t in tasks])["items"]
        return [task["id"] for task in items]

    def test_all_tasks_of_a_workflow_with_what_they_depend_on(self):
        a, b, c, d = self.diamond(workflow_id="nightly")
        self.diamond(workflow_id="other")
        tasks, reply = self.graph("nightly")
        self.assertEqual((set(tasks), reply["cut"], reply["id"]), ({a, b, c, d}, False, "nightly"))
        self.assertEqual(tasks[c]["depends_on"], [{"task": a, "type": "completion"}])
        self.assertCountEqual([one["task"] for one in tasks[d]["depends_on"]], [b, c])
        self.assertEqual((tasks[a]["status"], tasks[d]["status"]), ("pending", "blocked"))

    def test_from_any_task_the_whole_is_found_without_a_workflow_id(self):
        ids = self.diamond()
        self.enqueue()
        for task_id in ids:
            self.assertEqual(set(self.graph(task_id)[0]), set(ids))

    def test_children_belong_to_it(self):
        parent = self.enqueue(workflow_id="w")["id"]
        self.register()
        [held] = self.claim()
        self.report_ok("worker-1", held, "spawn", tasks=[{"type": "child"} for _ in range(150)])
        tasks, _ = self.graph("w")
        self.assertEqual(len(tasks), 151)
        self.assertEqual({task["parent_id"] for task in tasks.values()}, {None, parent})

    def test_a_large_one_is_cut_and_says_so(self):
        self.expect(201, "POST", "/v1/tasks", [{"type": "t", "workflow_id": "big"}
                                               for _ in range(30)])
        tasks, reply = self.graph("big", "?limit=10")
        self.assertEqual((len(tasks), reply["cut"]), (10, True))
        self.assertFalse(self.graph("big")[1]["cut"])

    def test_one_in_which_all_depend_on_all_is_cut_before_it_holds_up_other_reads(self):
        above = [task["id"] for task in self.expect(201, "POST", "/v1/tasks", [
            {"type": "t", "workflow_id": "dense"}] * 300)["items"]]
        self.expect(201, "POST", "/v1/tasks", [
            {"type": "t", "workflow_id": "dense", "depends_on": above} for _ in range(200)])
        tasks, reply = self.graph("dense")  # 60,000 dependencies, each seen from both ends
        self.assertTrue(reply["cut"])
        self.assertTrue(0 < len(tasks) < 500, len(tasks))

    def test_a_dependency_that_was_deleted_is_left_out(self):
        first = self.enqueue()["id"]
        second = self.enqueue(depends_on=[{"task": first, "type": "completion"}])["id"]
        self.expect(200, "POST", f"/v1/tasks/{first}:cancel")
        self.expect(204, "DELETE", f"/v1/tasks/{first}")
        self.assertEqual(set(self.graph(second)[0]), {second})

    def test_what_nobody_has_is_not_found(self):
        for name in ("nothing", "01a1de9a-40d4-7a49-8000-00000047a660", "a%20b"):
            self.expect_error(404, "not_found", "GET", f"/v1/workflows/{name}")


if __name__ == "__main__":
    unittest.main()
