"""What brokers and networks do (table G): killed, restarted, silent, full, in alarm, with a wrong
password or certificate. No message is lost, none makes two tasks."""
import subprocess

import certificates
import rabbit
from broker_harness import BrokerTest
from harness import binary, free_port, wait_until
from silence import Silence


def setUpModule():
    BrokerTest.broker = rabbit.begin_module(tls=True)


class Faults(BrokerTest):
    broker_fields = "heartbeat: 2s"

    def numbers(self):
        return sorted(task["payload"]["n"] for task in self.tasks())

    def test_f_g6_the_server_is_killed_again_and_again_and_every_message_is_one_task(self):
        """F-G6: what was committed and not acknowledged comes again."""
        self.wait_connected()
        count = 3000
        for first in range(0, count, 1000):
            self.publish(*[{"n": n} for n in range(first, first + 1000)])
            wait_until(lambda: self.shown()["messages"] > 0, what="the first message")
            self.server.stop(9)
            self.server.start()
        wait_until(lambda: len(self.tasks()) >= count, what="all tasks")
        self.wait_connected()
        wait_until(lambda: self.shown()["held"] == 0 and self.broker.waiting(self.queue) == 0,
                   what="the last acknowledgement")
        self.assertEqual(self.numbers(), list(range(count)))

    def test_f_g1_the_broker_is_killed_and_comes_back(self):
        """F-G1, of messages that become tasks."""
        self.wait_connected()
        self.publish(*[{"n": n} for n in range(500)])
        self.broker.kill()
        wait_until(lambda: self.shown()["status"] == "away", what="the end of the connection")
        self.enqueue("other")  # other clients notice nothing
        self.broker.start()
        self.wait_connected()  # the broker listens before its queues are there
        self.publish(*[{"n": n} for n in range(500, 600)])
        wait_until(lambda: len(self.tasks(type="order:new")) == 600, what="all tasks")
        self.assertGreaterEqual(self.shown()["failures"], 1)

    def test_a13_an_orderly_end_of_the_broker_is_noticed(self):
        self.wait_connected()
        self.publish({"n": 1})
        self.wait_shown(tasks=1)
        self.broker.stop()
        wait_until(lambda: self.shown()["status"] == "away", what="the end of the connection")
        self.broker.start()
        self.wait_connected()
        self.publish({"n": 2})
        wait_until(lambda: self.numbers() == [1, 2], what="the second task")

    def test_a13_a_queue_that_is_deleted_is_made_again(self):
        self.wait_connected()
        self.broker.connect().channel().queue_delete(self.queue)
        wait_until(lambda: self.shown()["failures"] == 1, what="the end of the delivery")
        self.assertIn("the queue was deleted", self.shown()["last_error"])
        self.wait_connected()
        self.publish({"n": 1})
        self.wait_shown(tasks=1)

    def test_f_g4_a_memory_alarm_holds_up_dead_letters_and_nothing_else(self):
        """F-G4."""
        self.wait_connected()
        self.publish(*[{"n": n} for n in range(20)], b"{")
        wait_until(lambda: self.shown()["refused"] == 1, what="a dead letter")
        self.server.stop()
        self.publish(b"{", *[{"n": n} for n in range(20, 40)])
        self.broker.control("set_vm_memory_high_watermark", "absolute", "1MB")
        try:
            self.server.start()
            self.wait_shown(tasks=20)
            self.assertEqual((self.shown()["refused"], self.shown()["held"]), (0, 1))
            self.enqueue("other")
        finally:
            self.broker.control("set_vm_memory_high_watermark", "absolute", "2GB")
        self.wait_shown(refused=1)
        wait_until(lambda: self.broker.waiting(self.queue + ".dead") == 2, what="both dead letters")

    def test_f_g3_dead_letters_wait_for_room_in_a_full_queue(self):
        """F-G3: a nack is tried again, and the message stays."""
        self.wait_connected()
        channel = self.broker.connect().channel()
        channel.queue_declare(self.queue + ".dead", durable=True, arguments={
            "x-max-length": 1, "x-overflow": "reject-publish"})
        self.publish(b"{", b"[", {"n": 1})
        self.wait_shown(tasks=1, refused=1)
        wait_until(lambda: "may be full" in self.shown()["last_error"], what="the reason")
        self.assertEqual(self.shown()["refused"], 1)
        self.assertEqual(self.shown()["held"], 1)
        channel.queue_purge(self.queue + ".dead")
        self.wait_shown(refused=2)

    def test_a13_a_queue_of_other_arguments_is_used_as_it_is(self):
        self.server.stop()
        channel = self.broker.connect().channel()
        queue = self.queue + ".other"
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum",
                                                              "x-max-length": 1000})
        self.queue = queue
        self.write_configuration()
        self.server.start()
        self.publish({"n": 1})
        self.wait_shown(tasks=1)


class Silent(BrokerTest):
    """A network that forwards nothing any more, without an end of the connection."""
    broker_fields = "heartbeat: 2s"

    def write_configuration(self):
        self.proxy = Silence(self.broker.port)
        self.addCleanup(self.proxy.close)
        self.write_brokers(self.broker.url(port=self.proxy.port))

    def test_a13_a_silent_network_is_given_up_and_the_messages_come_again(self):
        self.wait_connected()
        self.publish({"n": 1})
        self.wait_shown(tasks=1)
        self.proxy.fall_silent()
        self.publish({"n": 2})
        wait_until(lambda: self.shown()["status"] == "away", what="the broken connection")
        self.proxy.speak()
        self.wait_connected()
        self.wait_shown(tasks=2)
        self.assertEqual(sorted(task["payload"]["n"] for task in self.tasks()), [1, 2])


class Refused(BrokerTest):
    def test_a13_a_wrong_password_is_told_and_never_shown(self):
        self.server.stop()
        self.write_brokers(self.broker.url("guest:s3cret"))
        self.server.start()
        wait_until(lambda: self.shown()["failures"] > 0, what="the refusal")
        self.assertIn("403", self.shown()["last_error"])
        doctor = subprocess.run([binary(), "doctor"], cwd=self.folder, capture_output=True,
                                text=True, check=False)
        self.assertIn("Broker rabbit cannot be used", doctor.stdout)
        for text in (doctor.stdout, doctor.stderr, self.server.log(), str(self.shown())):
            self.assertNotIn("s3cret", text)

    def test_a13_a_password_in_a_file(self):
        self.server.stop()
        self.broker.control("add_user", "filed", "a b/c")
        self.broker.control("set_permissions", "filed", ".*", ".*", ".*")
        with open(f"{self.folder}/password", "w", encoding="utf-8") as file:
            file.write("a b/c\n")
        self.broker_fields = f"password_file: {self.folder}/password"
        self.write_brokers(self.broker.url("filed"))
        self.server.start()
        self.wait_connected()

    def test_a13_nobody_listens(self):
        self.server.stop()
        self.write_brokers(self.broker.url(port=free_port()))
        self.server.start()
        wait_until(lambda: self.shown()["failures"] > 1, what="two tries")
        self.enqueue("other")


class Tls(BrokerTest):
    def start_with(self, authority, host="127.0.0.1"):
        self.server.stop()
        self.broker_fields = f"tls: {{ca: {authority.pem}}}"
        self.write_brokers(f"amqps://{host}:{self.broker.tls_port}")
        self.server.start()

    def test_f_g7_tls_with_the_right_ca(self):
        """F-G7."""
        self.start_with(self.broker.authority)
        self.wait_connected()
        self.publish(*[{"n": n} for n in range(300)])
        self.publish(b"{")
        self.wait_shown(tasks=300, refused=1)

    def test_f_g7_another_ca_or_name_is_refused(self):
        """F-G7: never falls back to plain or unverified."""
        other = certificates.Authority(self.folder, "other")
        for authority, host in ((other, "127.0.0.1"), (self.broker.authority, "127.0.0.2")):
            self.start_with(authority, host)
            wait_until(lambda: self.shown()["failures"] > 0, what="the refusal")
            self.assertEqual((self.shown()["status"], self.shown()["messages"]), ("away", 0))
