"""A careful handler for the campaign of recovery: does its steps one after the other, each as one line
in a file, and starts the next only when the checkpoint after it is stored.

    recovery_handler.py FILE SERVER-PORT-FILE    (task on stdin, control lines on descriptor 3)

A task with {"poison": true} kills the worker that runs it."""
import http.client
import json
import os
import signal
import sys
import time

path, port_path = sys.argv[1:]
task = json.loads(sys.stdin.readline())
payload = task["payload"]
checkpoint = task["checkpoint"] or {}
FILE = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def write(**fields):
    os.write(FILE, (json.dumps({"task": task["id"], "attempt": task["attempt"], "at": time.time(),
                                "pid": os.getpid(), "worker": task["worker_id"], **fields})
                    + "\n").encode())


def shown():
    """The task as the server has it; unknown while the server does not answer."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(open(port_path).read()),
                                                timeout=5)
        connection.request("GET", f"/v1/tasks/{task['id']}")
        found = json.loads(connection.getresponse().read())
        connection.close()
        return found
    except (OSError, ValueError, http.client.HTTPException):
        return {}


write(what="start", resumed=checkpoint.get("name"))
if payload.get("poison"):
    while shown().get("status") != "running":  # or the server could not know that it was this one
        time.sleep(0.005)
    os.kill(int(task["worker_id"].rsplit("-", 2)[-2]), signal.SIGKILL)
    time.sleep(60)
for step in range((checkpoint.get("data") or {}).get("done", 0), payload["steps"]):
    time.sleep(payload["step_s"])
    write(what="step", step=step)
    message = {"name": f"step {step}", "progress": 100 * (step + 1) // payload["steps"],
               "data": {"done": step + 1}}
    os.write(3, (json.dumps({"checkpoint": message}) + "\n").encode())
    while (shown().get("checkpoint_data") or {}).get("name") != message["name"]:
        time.sleep(0.005)
os.write(3, (json.dumps({"result": payload["steps"]}) + "\n").encode())
write(what="end")
