"""kill -9 of a node between a call and its answer, again and again, with a lookup and without one
(D10): with it no call is done twice, without it every repeat has the same key, and no task is
lost. usage: service_kills.py [calls]; prints how many calls were interrupted. Not part of
`make test`, which has a few dozen."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))

import test_services  # noqa: E402

CALLS_PER_ROUND = 40  # two classes, two tests each, ten calls each


def main():
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    loader = unittest.defaultTestLoader
    done = 0
    while done < wanted:
        suite = unittest.TestSuite(loader.loadTestsFromTestCase(case)
                                   for case in (test_services.LookupTest, test_services.RepeatTest))
        with open(os.devnull, "w", encoding="utf-8") as quiet:
            result = unittest.TextTestRunner(stream=quiet).run(suite)
        for _, trace in result.failures + result.errors:
            print(trace)
        if not result.wasSuccessful():
            return 1
        done += CALLS_PER_ROUND
    print(f"{done} calls were interrupted by kill -9; none was lost, none with a lookup was done twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
