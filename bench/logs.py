#!/usr/bin/env python3
"""What tamper-evident logs cost: lines committed in a second in batches of 100, with hashes and,
in turns of 10,000, by the same code without; then `perdura verify --logs` over all of them.

    python3 bench/logs.py [--build build] [--lines 1000000] [--folder FOLDER]

Builds what it needs (bench/log_chain.c) in the build folder. The stores, some 700 MB for a million lines,
lie in a folder of their own below FOLDER (the build folder) and are removed at the end. Prints JSON."""
import argparse
import json
import os
import subprocess
import tempfile
import time


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def verified(build, store):
    began = time.monotonic()
    report = json.loads(output(os.path.join(build, "perdura"), "verify", "--logs", "--json", "--store",
                               store))
    if not report["ok"]:
        raise SystemExit(f"verify found something: {report['findings'][:3]}")
    return report["checked"]["log lines"] / (time.monotonic() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--lines", type=int, default=1000000, help="in ten thousands")
    parser.add_argument("--folder", help="where the stores lie meanwhile")
    options = parser.parse_args()
    output("cmake", "--build", options.build, "--target", "log_chain", "perdura")
    with tempfile.TemporaryDirectory(dir=options.folder or options.build) as folder:
        figures = json.loads(output(os.path.join(options.build, "log_chain"), folder,
                                    str(options.lines)))
        figures["verify_per_s"] = round(verified(options.build, os.path.join(folder, "log-chain.db")))
    figures["chain_costs_percent"] = round(
        100 * (1 - figures["with_per_s"] / figures["without_per_s"]), 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
