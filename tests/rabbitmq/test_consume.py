"""Messages of RabbitMQ become tasks (A13): each once, acknowledged after our commit; what cannot be a
task goes to a dead-letter queue with the reason."""
import json

import pika

import rabbit
from broker_harness import BrokerTest
from harness import wait_until


def setUpModule():
    BrokerTest.broker = rabbit.begin_module()


class Consume(BrokerTest):
    def test_a13_a_message_becomes_a_task_with_its_body_byte_for_byte(self):
        self.wait_connected()
        self.publish(b'{"id":7, "text":"\xc3\xa9"}')
        self.wait_shown(tasks=1)
        [task] = self.tasks()
        self.assertEqual((task["type"], task["status"], task["queue"], task["payload"]),
                         ("order:new", "pending", "default", {"id": 7, "text": "é"}))
        self.assertIn("perdura:broker:rabbit:" + self.queue, task["idempotency_key"])
        wait_until(lambda: self.shown()["held"] == 0, what="the acknowledgement")
        self.assertEqual(self.broker.waiting(self.queue), 0)

    def test_f_g6_a_message_delivered_five_times_is_one_task(self):
        """F-G6."""
        self.wait_connected()
        self.publish(*[{"n": i} for i in range(5)], ids=["same"] * 5)
        self.publish({"n": 9}, ids=["other"])
        self.wait_shown(tasks=2, duplicates=4)
        self.assertEqual(sorted(task["payload"]["n"] for task in self.tasks()), [0, 9])

    def test_a13_many_messages_share_commits(self):
        self.wait_connected()
        self.publish(*[{"n": i} for i in range(2000)])
        self.wait_shown(tasks=2000)
        self.assertEqual(sorted(task["payload"]["n"] for task in self.tasks()), list(range(2000)))

    def test_a13_what_is_no_task_goes_to_the_dead_letters_with_the_reason(self):
        self.wait_connected()
        self.publish(b"{", b'{"a":1}', b"\xff", b"1e999", ids=["a", "b", "c", "d"],
                     headers={"x": "y", "n": 5}, content_type="text/x", expiration="60000")
        self.publish({"n": 1}, ids=[None])
        self.wait_shown(tasks=1, refused=4)
        dead = self.broker.take_all(self.queue + ".dead")
        reasons = {body: properties.headers["x-perdura-reason"] for properties, body in dead}
        self.assertEqual(set(reasons), {b"{", b"\xff", b"1e999", b'{"n": 1}'})
        self.assertIn("no message_id", reasons[b'{"n": 1}'])
        [first] = [properties for properties, body in dead if body == b"{"]
        self.assertEqual((first.message_id, first.content_type, first.headers["x"],
                          first.headers["n"], first.headers["x-perdura-queue"],
                          first.delivery_mode, first.expiration),
                         ("a", "text/x", "y", 5, self.queue, 2, None))
        self.assertEqual(self.broker.waiting(self.queue), 0)
        self.assertEqual([task["payload"] for task in self.tasks()], [{"a": 1}])
        self.assertIn("message", self.shown()["last_error"])

    def test_a13_a_message_that_is_too_large_goes_to_the_dead_letters_whole(self):
        self.wait_connected()
        large = b'"' + b"x" * (5 << 20) + b'"'
        beyond = b'"' + b"x" * (1 << 20) + b'"'
        self.publish(large, beyond, b"1")
        self.wait_shown(tasks=1, refused=2)
        dead = self.broker.take_all(self.queue + ".dead")
        self.assertEqual([body for _, body in dead], [large, beyond])
        for properties, _ in dead:
            self.assertIn("larger than", properties.headers["x-perdura-reason"])

    def test_a13_messages_wait_for_a_server_that_is_down(self):
        self.wait_connected()
        self.server.stop()
        self.publish({"n": 1}, {"n": 2})
        self.server.start()
        self.wait_shown(tasks=2)

    def test_a13_metrics_and_the_command_show_what_is_consumed(self):
        self.wait_connected()
        self.publish({"n": 1})
        self.wait_shown(tasks=1)
        text = self.request("GET", "/metrics").body.decode()
        self.assertIn(f'perdura_broker_tasks_total{{broker="rabbit",queue="{self.queue}"}} 1', text)
        self.assertIn(f'perdura_broker_connected{{broker="rabbit",queue="{self.queue}"}} 1', text)


class Mapped(BrokerTest):
    fields = 'task_queue: orders\n        map: {payload: /body, key: /id, options: /task}'

    def test_a13_members_of_the_body_become_payload_key_and_options(self):
        self.wait_connected()
        body = {"id": 5, "body": [1, 2], "task": {"priority": 7, "tags": ["a"]}}
        self.publish(body, {**body, "body": "again"}, {"id": "5b", "body": None})
        self.wait_shown(tasks=2, duplicates=1)
        tasks = {task["idempotency_key"].rsplit(":", 1)[1]: task for task in self.tasks()}
        self.assertEqual((tasks["5"]["payload"], tasks["5"]["priority"], tasks["5"]["tags"],
                          tasks["5"]["queue"]), ([1, 2], 7, ["a"], "orders"))
        self.assertIsNone(tasks["5b"]["payload"])

    def test_a13_options_that_a_request_would_be_refused_for_are_poison(self):
        self.wait_connected()
        wrong = [{"colour": 1}, {"priority": 100000}, {"type": "other"}, {"idempotency_key": "k"},
                 {"idempotency_key": "perdura:x"}, [], "text", {"queue": ""},
                 {"callback_url": "http://127.0.0.1/x"},
                 {"depends_on": ["01890000-0000-7000-8000-000000000000"]}]
        self.publish(*[{"id": i, "body": 1, "task": task} for i, task in enumerate(wrong)],
                     {"id": "x", "body": 1}, {"body": 1}, {"id": {}, "body": 1}, {"id": "y"})
        self.wait_shown(tasks=1, refused=len(wrong) + 3)
        dead = self.broker.take_all(self.queue + ".dead")
        reasons = {json.loads(body).get("id", "none") if not isinstance(
            json.loads(body).get("id"), dict) else "object":
            properties.headers["x-perdura-reason"] for properties, body in dead}
        self.assertEqual(len(reasons), len(wrong) + 3)
        self.assertIn("colour", reasons[0])
        self.assertIn("callbacks.allow", reasons[8])
        self.assertIn("map.key", reasons["none"])
        self.assertIn("map.payload", reasons["y"])


class Bounds(BrokerTest):
    fields = "prefetch: 10"

    def test_a13_prefetch_bounds_what_a_node_holds(self):
        """A namespace at its bound takes nothing: the messages stay in the broker."""
        self.wait_connected()
        self.expect(200, "PATCH", "/v1/namespaces/default", {"limits": {"waiting": 5}})
        self.publish(*[{"n": i} for i in range(100)])
        self.wait_shown(tasks=5, put_off=1)
        shown = self.shown()
        self.assertLessEqual(shown["held"], 10)
        self.assertGreaterEqual(self.broker.waiting(self.queue), 85)
        self.expect(200, "PATCH", "/v1/namespaces/default", {"limits": {"waiting": None}})
        self.wait_shown(tasks=100)
        self.assertEqual(len({task["payload"]["n"] for task in self.tasks()}), 100)
