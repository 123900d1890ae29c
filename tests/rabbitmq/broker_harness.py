"""A server of its own that consumes queues of a broker of its own."""
import itertools
import json

import pika

from harness import ApiTest, wait_until

NUMBERS = itertools.count(1)


class BrokerTest(ApiTest):
    """`broker` is set by the module; every test has queues of its own."""
    broker = None
    broker_fields = ""
    fields = ""

    def setUp(self):
        self.queue = f"in.{next(NUMBERS)}"
        self.addCleanup(self.broker.close_connections)
        super().setUp()

    def write_configuration(self):
        self.write_brokers(self.broker.url())

    def write_brokers(self, url, more=""):
        text = f"""brokers:
  - name: rabbit
    url: {url}
    {self.broker_fields}
    consume:
      - queue: {self.queue}
        type: "order:new"
        queue_type: classic
        {self.fields}
{more}"""
        with open(f"{self.folder}/perdura.yaml", "w", encoding="utf-8") as file:
            file.write(text)

    def shown(self):
        [view] = self.expect(200, "GET", "/v1/brokers")["items"]
        return view

    def wait_connected(self):
        wait_until(lambda: self.shown()["status"] == "connected", what="the connection")

    def wait_shown(self, **figures):
        """Until the figures are these, or more."""
        def reached():
            shown = self.shown()
            return shown if all(shown[key] >= value for key, value in figures.items()) else None
        return wait_until(reached, what=f"{figures}; it is {self.shown()}")

    def publish(self, *bodies, ids=None, queue=None, **properties):
        """Confirmed by the broker. ids: message ids; default: new ones."""
        channel = self.broker.channel()
        for at, body in enumerate(bodies):
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
            message_id = ids[at] if ids else f"m{next(NUMBERS)}"
            channel.basic_publish("", queue or self.queue, body, pika.BasicProperties(
                message_id=message_id, delivery_mode=2, **properties), mandatory=True)
        channel.connection.close()

    def tasks(self, **filters):
        query = "&".join(f"{key}={value}" for key, value in {"limit": 1000, **filters}.items())
        items, cursor = [], ""
        while cursor is not None:
            page = self.expect(200, "GET", f"/v1/tasks?{query}{cursor}")
            items += page["items"]
            cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
        return items
