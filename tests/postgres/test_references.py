"""Tables of users that refer to tasks (B8), as docs/recovery.md shows them."""
import pathlib
import re
import unittest

from cluster import ClusterTest, begin_module

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "recovery.md"
USER_TABLE = re.search(r"CREATE TABLE contract_analyses.*?\n(?=INSERT)", DOCS.read_text(), re.S).group()


def setUpModule():
    begin_module()


class References(ClusterTest):
    def test_b8_rows_that_refer_to_a_task_go_with_it(self):
        cluster = self.cluster(1)
        node = cluster.nodes[0]
        [[schema]] = cluster.sql("SELECT current_schema()")
        cluster.sql(USER_TABLE.replace("perdura.", f"{schema}."))
        kept, deleted, purged = (node.enqueue(user_id=user)["id"] for user in ("a", "b", "c"))
        for task_id in (kept, deleted, purged):
            cluster.sql(f"INSERT INTO contract_analyses (contract, task_id) VALUES "
                        f"('{task_id}', '{task_id}')")
        for task_id in (deleted, purged):
            node.expect(200, "POST", f"/v1/tasks/{task_id}:cancel")
        node.expect(204, "DELETE", f"/v1/tasks/{deleted}")
        self.assertEqual(cluster.sql("SELECT count(*) FROM contract_analyses"), [["2"]])
        node.expect(200, "DELETE", "/v1/tasks?user_id=c")
        self.assertEqual(cluster.sql("SELECT contract FROM contract_analyses"), [[kept]])
        node.expect(200, "GET", f"/v1/tasks/{kept}")


if __name__ == "__main__":
    unittest.main()
