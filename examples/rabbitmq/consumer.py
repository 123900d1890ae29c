#!/usr/bin/env python3
"""Works on tasks whose ids come through RabbitMQ: each message is {"task_id": "…"}. The message is
acknowledged after the report. A task that has ended, or that another worker holds, is left alone.

    consumer.py http://127.0.0.1:7070 amqp://guest:guest@127.0.0.1:5672 perdura.work
Needs pika (Debian: python3-pika)."""
import json
import sys
import threading
import urllib.error
import urllib.request

import pika

SERVER, BROKER, QUEUE = sys.argv[1:4]


def call(path, body):
    """(status, answer)"""
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def register():
    _, worker = call("/v1/workers", {"hostname": "consumer", "queues": ["default"], "version": "1"})
    return worker["id"], worker["heartbeat_ms"] / 1000


def beat(stop):
    while not stop.wait(pause):
        call(f"/v1/workers/{worker}:heartbeat", {})


def work(task):
    print("works on", task["id"], flush=True)
    return {"sum": sum(task["payload"])}


def report(task, **element):
    call(f"/v1/workers/{worker}:report",
         [{"task_id": task["id"], "lease_token": task["lease_token"], **element}])


def on_message(channel, method, _, body):
    status, answer = call(f"/v1/workers/{worker}:claim", {"task_id": json.loads(body)["task_id"]})
    if status == 429 or status >= 500:  # its queue is paused or at a limit, or the server is busy
        channel.connection.sleep(1)
        channel.basic_nack(method.delivery_tag, requeue=True)
        return
    for task in answer.get("tasks", []):
        try:
            report(task, op="start")
            report(task, op="complete", result=work(task))
        except (TypeError, ValueError) as error:
            report(task, op="fail", error=str(error), retryable=False)
    if status != 200:
        print("leaves it:", answer["error"]["message"], flush=True)
    channel.basic_ack(method.delivery_tag)


worker, pause = register()
threading.Thread(target=beat, args=(threading.Event(),), daemon=True).start()
connection = pika.BlockingConnection(pika.URLParameters(BROKER))
channel = connection.channel()
channel.queue_declare(QUEUE, durable=True)
channel.basic_qos(prefetch_count=1)
channel.basic_consume(QUEUE, on_message)
print("ready", flush=True)
channel.start_consuming()
