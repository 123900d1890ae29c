"""The ledger of a campaign: one JSON line for every piece of work that was done, with its seed,
its counts and what was found. A campaign that is started again reads it and continues where it
stopped; the report is made of it and of nothing else."""
import datetime
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def commit():
    """The short hash of the tree that runs; '+' marks changes that are not committed."""
    done = subprocess.run(["git", "describe", "--always", "--dirty=+", "--exclude=*"], cwd=ROOT,
                          capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


class Ledger:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.commit = commit()

    def rows(self, part, **fields):
        """The lines of one part, oldest first; keyword arguments narrow them to equal fields."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            row = json.loads(line)
            if row["part"] == part and all(row.get(k) == v for k, v in fields.items()):
                found.append(row)
        return found

    def total(self, part, field, **fields):
        return sum(row.get(field, 0) for row in self.rows(part, **fields))

    def findings(self, part, **fields):
        return [text for row in self.rows(part, **fields) for text in row.get("findings", ())]

    def add(self, part, **fields):
        """One line, on the disk when this returns: what is not written here was not done."""
        today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        row = {"part": part, "date": today, "commit": self.commit, **fields}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return row
