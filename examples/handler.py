#!/usr/bin/env python3
"""A process handler in Python, standard library only.

    perdura serve --config perdura.yaml
    perdura enqueue example:py --payload '{"items":["a","b","c"]}' --wait
"""
import json
import os
import signal
import sys
import time

control = os.fdopen(3, "w", buffering=1)  # a line is sent when it is complete


def tell(**message):
    print(json.dumps(message), file=control)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))  # continue later, from the last checkpoint

task = json.loads(sys.stdin.readline())
items = (task["payload"] or {}).get("items", ["a", "b", "c"])
if not isinstance(items, list):
    tell(fail={"error": "payload.items must be a list", "retryable": False})
    sys.exit(0)

seen = (task["checkpoint"] or {}).get("data") or []  # what earlier attempts have done
print(f"attempt {task['attempt']}, {len(seen)} of {len(items)} items are done")  # an INFO log

for item in items[len(seen):]:
    time.sleep(0.2)  # the work
    seen.append(item)
    percent = len(seen) * 100 // len(items)
    tell(progress=percent, state=f"Did {item}")
    tell(checkpoint={"name": f"item-{len(seen)}", "progress": percent, "data": seen})

tell(log={"level": "INFO", "message": "all done", "context": {"items": len(seen)}})
tell(result={"items": seen})
