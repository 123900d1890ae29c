"""Categories (D1, D5): what jobs have in common. Each test has a server of its own."""
import unittest

from planning import NOBODY, PlanningTest

FIRST = {  # name: default_priority, default_timeout, default_max_retries, queue
    "general": ("medium", 300, 3, "default"),
    "messaging": ("high", 30, 3, "high-priority"),
    "notifications": ("high", 15, 5, "high-priority"),
    "maintenance": ("medium", 600, 2, "medium-priority"),
    "cleanup": ("low", 300, 2, "low-priority"),
    "reports": ("medium", 120, 1, "medium-priority"),
    "analytics": ("low", 300, 1, "low-priority"),
}


class CategoriesTest(PlanningTest):
    def test_d5_a_new_store_has_the_six_first_categories_and_general(self):
        found = {c["name"]: (c["default_priority"], c["default_timeout"],
                             c["default_max_retries"], c["configuration"]["queue"])
                 for c in self.items("/v1/categories")}
        self.assertEqual(found, FIRST)

    def test_d1_a_category_is_made_shown_changed_and_deleted(self):
        made = self.category("billing", description="money", default_priority="critical",
                             default_timeout=45, default_max_retries=7,
                             configuration={"queue": "money", "colour": "red"})
        self.assertEqual((made["default_priority"], made["default_timeout"],
                          made["default_max_retries"], made["is_active"]),
                         ("critical", 45, 7, True))
        self.assertEqual(made["configuration"], {"queue": "money", "colour": "red"})
        path = f"/v1/categories/{made['id']}"
        self.assertEqual(self.expect(200, "GET", path), made)
        self.assertEqual(self.expect(200, "GET", "/v1/categories/billing"), made)
        changed = self.expect(200, "PATCH", path, {"default_priority": 7, "description": None})
        self.assertEqual((changed["default_priority"], changed["description"],
                          changed["default_timeout"]), (7, None, 45))
        self.assertGreater(changed["updated_at"], made["updated_at"])
        self.assertEqual(self.expect(200, "PATCH", "/v1/categories/billing",
                                     {"is_active": False})["is_active"], False)
        self.expect(204, "DELETE", "/v1/categories/billing")
        self.expect_error(404, "not_found", "GET", path)

    def test_a_new_category_says_where_it_is(self):
        reply = self.request("POST", "/v1/categories", {"name": "a"})
        self.assertEqual(reply.headers["Location"], f"/v1/categories/{reply.json['id']}")

    def test_a_name_may_hold_a_slash_and_a_colon(self):
        made = self.category("a/b:run")
        self.assertEqual(self.expect(200, "GET", "/v1/categories/a%2Fb%3Arun"), made)
        self.expect(204, "DELETE", "/v1/categories/a%2Fb%3Arun")

    def test_a_name_is_taken_once(self):
        self.category("billing")
        self.expect_error(409, "conflict", "POST", "/v1/categories", {"name": "billing"})
        other = self.category("other")
        self.expect_error(409, "conflict", "PATCH", f"/v1/categories/{other['id']}",
                          {"name": "billing"})

    def test_d1_a_category_with_jobs_is_not_deleted(self):
        self.category("billing")
        job = self.job(category="billing")
        self.expect_error(409, "conflict", "DELETE", "/v1/categories/billing")
        self.expect(200, "PATCH", f"/v1/jobs/{job['id']}", {"category": "general"})
        self.expect(204, "DELETE", "/v1/categories/billing")

    def test_lists_are_filtered_and_paged(self):
        made = [self.category(f"c{i}", is_active=i % 2 == 0) for i in range(5)]
        ids = self.ids(made)[::-1]
        self.assertEqual(self.ids(self.items("/v1/categories"))[:5], ids)
        self.assertEqual(self.ids(self.items("/v1/categories", is_active="false")),
                         [made[3]["id"], made[1]["id"]])
        self.assertEqual(self.ids(self.items("/v1/categories", name="c4")), [made[4]["id"]])
        self.assertEqual(self.items("/v1/categories", name="none"), [])
        for limit in (1, 4, 12, 16):
            self.assertEqual(self.ids(self.pages("/v1/categories", limit))[:5], ids)
            self.assertEqual(len(self.pages("/v1/categories", limit)), 12)

    def test_what_makes_no_sense_is_refused_with_its_field(self):
        self.check_refusals("POST", "/v1/categories", {"name": "a"}, [
            ({"name": None}, "name"), ({"name": ""}, "name"), ({"name": "x" * 201}, "name"),
            ({"name": 5}, "name"), ({"colour": "red"}, "colour"),
            ({"default_priority": "urgent"}, "default_priority"),
            ({"default_priority": 1001}, "default_priority"),
            ({"default_timeout": 0}, "default_timeout"),
            ({"default_max_retries": -1}, "default_max_retries"),
            ({"configuration": []}, "configuration"),
            ({"configuration": {"allowed_windows": ["25:00-26:00"]}},
             "configuration.allowed_windows"),
            ({"configuration": {"batch_size": 0}}, "configuration.batch_size"),
            ({"is_active": "yes"}, "is_active")])
        self.expect_error(422, "invalid", "POST", "/v1/categories", {}, field="name")
        self.expect_error(400, "malformed", "POST", "/v1/categories", b"{")
        self.expect_error(422, "invalid", "POST", "/v1/categories", [])

    def test_unknown_ids_and_parameters_are_refused(self):
        for path in (f"/v1/categories/{NOBODY}", "/v1/categories/nobody"):
            self.expect_error(404, "not_found", "GET", path)
            self.expect_error(404, "not_found", "PATCH", path, {"description": "a"})
            self.expect_error(404, "not_found", "DELETE", path)
        for query, field in (("colour=red", "colour"), ("limit=0", "limit"), ("cursor=x", "cursor"),
                             ("cursor=j" + "0" * 32, "cursor"), ("is_active=1", "is_active")):
            self.expect_error(422, "invalid", "GET", f"/v1/categories?{query}", field=field)
        self.expect_error(405, "method_not_allowed", "PUT", "/v1/categories")

    def test_d5_a_task_may_name_a_category_and_gets_its_queue_and_values(self):
        self.category("billing", default_priority="high", default_timeout=45,
                      default_max_retries=7, configuration={"queue": "money"})
        task = self.enqueue(category="billing")
        self.assertEqual((task["queue"], task["priority"], task["timeout_ms"],
                          task["max_retries"]), ("money", 10, 45000, 7))
        billing = self.expect(200, "GET", "/v1/categories/billing")
        self.assertEqual(task["category_id"], billing["id"])
        own = self.enqueue(category="billing", queue="q", priority=1, timeout_ms=5, max_retries=0)
        self.assertEqual((own["queue"], own["priority"], own["timeout_ms"], own["max_retries"]),
                         ("q", 1, 5, 0))
        self.expect_error(422, "invalid", "POST", "/v1/tasks", {"type": "a", "category": "none"},
                          field="category")

    def test_d5_an_inactive_category_runs_nothing(self):
        self.category("billing")
        job = self.job(category="billing")
        self.expect(200, "PATCH", "/v1/categories/billing", {"is_active": False})
        self.expect_error(409, "conflict", "POST", f"/v1/jobs/{job['id']}:run")
        self.expect(200, "PATCH", "/v1/categories/billing", {"is_active": True})
        self.expect(201, "POST", f"/v1/jobs/{job['id']}:run")


if __name__ == "__main__":
    unittest.main()
