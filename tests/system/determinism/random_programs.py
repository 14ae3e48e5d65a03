#!/usr/bin/python3
"""Runs each of several random programs twice in lockstep: random_programs.py FROM TO [--at-once N] [--only-once]

A seed always makes the same program (random_program SEED --print). If a program fails, or if its two runs differ,
prints its seed, the first difference, and the smallest part of the program that still has the error.
"""
import argparse
import concurrent.futures
import subprocess

from cases import Case
from runs import difference, run_once
from rocemu import BIN, temporary_directory

PROGRAM = BIN / "random_program"
ATTEMPTS = 4  # pairs of runs that decide whether a smaller program still has the error


def command(seed, without):
    left_out = ["--without", ",".join(map(str, sorted(without)))] if without else []
    return [PROGRAM, str(seed), *left_out]


def check(seed, without=frozenset(), clock=("--lockstep",), runs=2):
    """Returns the errors as text, or "" if there are none."""
    case = Case(f"seed {seed}", "Random", command(seed, without), captured=False)
    with temporary_directory() as directory:
        first = None
        for _ in range(runs):
            run = run_once(case, directory, clock)
            if run.failed:
                return run.story()
            if first and (found := difference(first, run)):
                return found
            first = first or run
    return ""


def acts_of(seed):
    text = subprocess.run([PROGRAM, str(seed), "--print"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    return [int(line.split()[1].rstrip(":")) for line in text.splitlines()
            if line.startswith("act ")]


def shrink(seed):
    """Removes as many acts as possible while the error remains. Returns the removed acts, and the error of the
    remaining program."""
    without, why = set(), ""
    left = acts_of(seed)
    size = len(left) // 2
    while size > 0:
        for begin in range(0, len(left), size):
            candidate = without | set(left[begin:begin + size])
            found = next(filter(None, (check(seed, candidate) for _ in range(ATTEMPTS))), "")
            if found:
                without, why = candidate, found
        remaining = [act for act in left if act not in without]
        if len(remaining) == len(left):
            size //= 2
        left = remaining
    return without, why


def report(seed, why):
    without, why_smaller = shrink(seed)
    smaller = subprocess.run([*command(seed, without), "--print"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    again = " ".join(map(str, command(seed, without)[1:]))
    return f"seed {seed}: {why}\nThe least that does so is random_program {again}:\n{smaller}{why_smaller}"


def failures(begin, end, at_once, clock=("--lockstep",), runs=2):
    """Yields (seed, error) for the programs that fail."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        seeds = range(begin, end)
        for seed, why in zip(seeds, pool.map(lambda one: check(one, frozenset(), clock, runs),
                                             seeds)):
            if why:
                yield seed, why


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("begin", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--only-once", action="store_true",
                        help="on the real clock: whether the programs themselves are right")
    parser.add_argument("--no-shrink", action="store_true")
    arguments = parser.parse_args()
    clock, runs = ((), 1) if arguments.only_once else (("--lockstep",), 2)
    count = 0
    for seed, why in failures(arguments.begin, arguments.end, arguments.at_once, clock, runs):
        count += 1
        plain = arguments.no_shrink or arguments.only_once
        print(f"seed {seed}: {why}" if plain else report(seed, why), flush=True)
    print(f"{count} of {arguments.end - arguments.begin} programs went wrong")
    raise SystemExit(1 if count else 0)


if __name__ == "__main__":
    main()
