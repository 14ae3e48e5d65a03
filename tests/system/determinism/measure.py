#!/usr/bin/python3
"""Counts for each case the runs that differ from the first one: measure.py [--runs N] [--at-once N]
[NAME...]

A NAME selects the cases (cases.py) whose names contain it. Prints for each case how many runs failed,
how many differed from the first successful run, the median duration in seconds, and the first
difference.
"""
import argparse
import concurrent.futures
import statistics

from cases import by_name
from runs import difference, repeat


def measure(case, count):
    runs = list(repeat(case, count))
    good = [run for run in runs if not run.failed]
    differences = [found for run in good[1:] if (found := difference(good[0], run))]
    failed = next((run.story() for run in runs if run.failed), "")
    return (case, count - len(good), len(differences),
            statistics.median(run.seconds for run in runs), differences[:1], failed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        for case, failed, differing, seconds, differences, story in pool.map(
                lambda case: measure(case, arguments.runs), by_name(arguments.names)):
            bad += bool(failed or differing)
            print(f"{case.subject:11} {case.name:40} {failed:3} failed {differing:3} differ "
                  f"of {arguments.runs}  {seconds:6.2f} s", flush=True)
            for text in (*differences, story):
                for line in text.splitlines()[:12]:
                    print("    " + line[:200])
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
