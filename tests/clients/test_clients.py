"""Clients in TypeScript that generators make from openapi.json with their defaults compile under --strict and work
against a server: enqueue, claim, report, wait, a list page by page, an error. PERDURA_CLIENTS names the folder that
packages.sh has filled."""
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import DEADLINE_S, ROOT, ApiTest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = pathlib.Path(os.environ.get("PERDURA_CLIENTS", ROOT / "build/clients"))


def run(*command, **environment):
    done = subprocess.run(command, cwd=PACKAGES, env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=3 * DEADLINE_S)
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Clients(ApiTest):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(PACKAGES / "generated", ignore_errors=True)
        for name in ("with_fetch.ts", "with_sdk.ts", "tsconfig.json"):
            shutil.copy(HERE / name, PACKAGES)
        (PACKAGES / "out").mkdir(exist_ok=True)
        (PACKAGES / "out/package.json").write_text('{"type": "commonjs"}')
        document = str(ROOT / "src/server/assets/openapi.json")
        tools = PACKAGES / "node_modules/.bin"
        run(str(tools / "openapi-typescript"), document, "-o", "generated/schema.d.ts")
        run(str(tools / "openapi-ts"), "-i", document, "-o", "generated/sdk")
        run(str(tools / "tsc"), "-p", "tsconfig.json")

    def run_client(self, name):
        address = "http://{}:{}".format(*self.server.address)
        self.assertEqual(run("node", f"out/{name}.js", SERVER=address).strip(), "done")

    def test_types_made_by_openapi_typescript_compile_and_work(self):
        self.run_client("with_fetch")

    def test_a_client_made_by_openapi_ts_compiles_and_works(self):
        self.run_client("with_sdk")


if __name__ == "__main__":
    unittest.main()
