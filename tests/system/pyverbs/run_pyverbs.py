#!/usr/bin/python3
"""Runs rdma-core's own tests, as Debian packages them, on an emulated device, and compares the results with
expected.tsv.

Runs all generic tests, but not those of mlx5, efa and cuda, which need their hardware. Each run has a private daemon.
The table is for rdma-core 44 (Debian 12): with it, the exit status is 0 if every result is that of the table. With
another version, it is 0 if no test fails, and no test is skipped that passes in the table. The table's columns: the
test, its result here, its result on Linux 6.12's rxe, and a remark: why it is skipped or what it needs.
"""
import argparse
import collections
import fnmatch
import glob
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGED = pathlib.Path("/usr/share/doc/rdma-core/tests")
OF_OTHER_DEVICES = ("test_mlx5_*", "test_efa*", "test_cuda*")
EXPECTED = HERE / "expected.tsv"
VERSION = 44  # the rdma-core version of the table
NEEDS_HUGE_PAGES = "needs huge pages"
HUGE_PAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")

Expected = collections.namedtuple("Expected", "rocemu rxe remark")
Result = collections.namedtuple("Result", "result reason")


def copy_tests(destination):
    """Copies the package `tests` so that it can be imported. Debian compresses its larger files."""
    destination.mkdir()
    for source in PACKAGED.iterdir():
        if any(fnmatch.fnmatch(source.name, pattern) for pattern in OF_OTHER_DEVICES):
            continue
        if source.suffix == ".gz":
            (destination / source.stem).write_bytes(gzip.decompress(source.read_bytes()))
        elif source.is_file():
            shutil.copy(source, destination)


def run_all(rocemu, limit, texts, record=None):
    """Returns the results by test ID."""
    options = ["--record", os.path.abspath(record)] if record else []
    with tempfile.TemporaryDirectory(prefix="rocemu-pyverbs-") as directory:
        directory = pathlib.Path(directory)
        copy_tests(directory / "tests")
        lines = directory / "results"
        scratch = directory / "scratch"  # so that files that a killed test leaves in TMPDIR are removed, too
        scratch.mkdir()
        # This policy is for a test of address handles that expects hardware which refuses a vector without a GRH.
        subprocess.run(
            [rocemu, "run", "--private", "--require-grh", *options, "--", "/usr/bin/python3",
             HERE / "one_by_one.py", directory, lines, str(limit), *texts],
            stdin=subprocess.DEVNULL, check=True, cwd=scratch,
            env={**os.environ, "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"})
        results = {}
        for line in lines.read_text().splitlines():
            result, test, reason = line.split("\t")
            results[test] = Result(result, reason)
        return results


def read_expected():
    expected = {}
    for line in EXPECTED.read_text().splitlines()[1:]:
        test, rocemu, rxe, remark = line.split("\t")
        expected[test] = Expected(rocemu, rxe, remark)
    return expected


def has_huge_pages():
    return HUGE_PAGES.exists() and int(HUGE_PAGES.read_text()) > 0


def is_reason(remark, reason):
    """Returns whether a remark matches the reason of a skip. A remark is the reason itself, a pattern, or several
    of these with a bar between them."""
    return any(fnmatch.fnmatch(reason, pattern) for pattern in remark.split(" | "))


def differences(expected, results):
    """Returns a line for each test whose result differs from the table, or that only one of both has."""
    for test in sorted(expected.keys() | results.keys()):
        if test not in results:
            yield f"{test}: in the table, but there is no such test"
            continue
        got = results[test]
        told = f"{got.result} {got.reason}".strip()
        if test not in expected:
            yield f"{test}: not in the table: {told}"
            continue
        wanted = expected[test]
        if wanted.remark == NEEDS_HUGE_PAGES:
            same = got.result == (wanted.rocemu if has_huge_pages() else "SKIP")
        else:  # A skip is also a difference if its reason is new.
            same = got.result == wanted.rocemu and is_reason(wanted.remark, got.reason)
        if not same:
            yield f"{test}: expected {wanted.rocemu} {wanted.remark}".rstrip() + f", got {told}"


def has_the_tables_version():
    return bool(glob.glob(f"/usr/lib/*/libibverbs.so.*.{VERSION}.0"))


def failures(expected, results):
    """Returns what differences() does, for another version of rdma-core than that of the table, which has other
    tests."""
    for test, got in sorted(results.items()):
        told = f"{got.result} {got.reason}".strip()
        if got.result not in ("PASS", "SKIP"):
            yield f"{test}: {told}"
        elif got.result == "SKIP" and test in expected:
            wanted = expected[test]
            if wanted.rocemu == "PASS" and wanted.remark != NEEDS_HUGE_PAGES:
                yield f"{test}: passes in the table's version, got {told}"


def summary(expected, results):
    counts = collections.Counter(got.result for got in results.values())
    both = [(expected[test].rxe, got.result) for test, got in results.items() if test in expected]
    text = ", ".join(f"{number} {result}" for result, number in sorted(counts.items()))
    return (f"{len(results)} tests: {text}. Of {sum(rxe == 'PASS' for rxe, _ in both)} that pass on "
            f"rxe {both.count(('PASS', 'PASS'))} pass, of {sum(rxe == 'SKIP' for rxe, _ in both)} "
            f"that it skips {both.count(('SKIP', 'PASS'))}.")


def update(expected, results):
    """Writes the results to the table. A failure never becomes an expected result."""
    bad = [test for test, got in results.items() if got.result not in ("PASS", "SKIP")]
    if bad:
        sys.exit("run_pyverbs.py: not written, for these fail: " + " ".join(bad))
    for test, got in results.items():
        old = expected.get(test, Expected("", "-", ""))
        if old.remark == NEEDS_HUGE_PAGES:
            continue
        keeps = got.result == old.rocemu and is_reason(old.remark, got.reason)
        expected[test] = Expected(got.result, old.rxe, old.remark if keeps else got.reason)
    lines = ["test\trocemu\trxe 6.12\tremark"]
    lines += ["\t".join((test, *expected[test])) for test in sorted(expected)]
    EXPECTED.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rocemu", default=os.path.join(os.environ.get("ROCEMU_BIN", ""), "rocemu"),
                        help="the command (default: that in $ROCEMU_BIN, or else in $PATH)")
    parser.add_argument("--results", help="write result, test and reason here, tab-separated")
    parser.add_argument("--record", metavar="DIR", help="keep a recording of the run in a new DIR")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run N times in a row")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one test")
    parser.add_argument("--update", action="store_true", help="correct the table instead of failing")
    parser.add_argument("text", nargs="*", help="only tests whose id contains one of these")
    arguments = parser.parse_args()
    rocemu = shutil.which(arguments.rocemu)
    if rocemu is None:
        sys.exit(f"run_pyverbs.py: there is no command {arguments.rocemu}")
    expected = read_expected()
    if arguments.text:
        expected = {test: row for test, row in expected.items()
                    if any(text in test for text in arguments.text)}
    failed = 0
    for number in range(1, arguments.repeat + 1):
        results = run_all(os.path.abspath(rocemu), arguments.limit, arguments.text,
                          arguments.record)
        if arguments.results:
            pathlib.Path(arguments.results).write_text("".join(
                f"{got.result}\t{test}\t{got.reason}\n" for test, got in sorted(results.items())))
        if arguments.update:
            update(read_expected(), results)
            continue
        compare = differences if has_the_tables_version() else failures
        different = list(compare(expected, results))
        for line in different:
            print(line)
        failed += bool(different)
        print(f"run {number}: " if arguments.repeat > 1 else "", summary(expected, results),
              sep="", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
