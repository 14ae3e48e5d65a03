"""Tests that with --sanitize, compilers' sanitizers and valgrind know the NIC's accesses to buffers: they report
the line of a wrong program, and nothing for its correct twin."""
import os
import pathlib
import shutil
import unittest

from support import HERE, LOCKSTEP, rocemu_run, side_by_side
from rocemu import run, temporary_directory

SOURCES = HERE / "compilers"
ADDRESS = {
    "gcc": ["-fsanitize=address"],
    "clang": ["-fsanitize=address"],
    "clang, shared": ["-fsanitize=address", "-shared-libasan"],
}
THREAD = {"gcc": ["-fsanitize=thread"], "clang": ["-fsanitize=thread"]}
# libibverbs and the libraries that it uses are built without MemorySanitizer, so it considers memory from malloc()
# that they have initialized before main() uninitialized. The program itself marks which memory is uninitialized.
MEMORY = {"clang": ["-fsanitize=memory"]}
NOT_FROM_MALLOC = {"MSAN_OPTIONS": "poison_in_malloc=0"}
VALGRIND = ("valgrind", "--quiet", "--error-exitcode=99")


def marked_line(name):
    """Returns the place at which the program makes its mistake."""
    lines = (SOURCES / f"{name}.c").read_text(encoding="utf-8").splitlines()
    return next(f"{name}.c:{number}" for number, line in enumerate(lines, 1)
                if line.endswith("// wrong"))


class Compilers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = temporary_directory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)

    def build(self, name, compiler, flags, definitions=()):
        program = self.directory / f"{name}-{compiler}{''.join(definitions)}"
        command = compiler.split(",")[0]
        if shutil.which(command) is None:
            self.skipTest(f"{command} is not installed")
        if "-shared-libasan" in flags:
            library = run(command, "-print-file-name=libclang_rt.asan-x86_64.so").stdout.strip()
            flags = [*flags, f"-Wl,-rpath,{os.path.dirname(library)}"]
        result = run(command, "-std=gnu11", "-g", "-O0", *flags, *definitions,
                     "-I", HERE / "pair", SOURCES / f"{name}.c", HERE / "pair" / "pair.c", "-o", program,
                     "-libverbs", "-lpthread")
        self.assertEqual(result.returncode, 0, result.stdout)
        return program

    def sanitized_run(self, *command, options=(), **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.endswith("SAN_OPTIONS")}
        return rocemu_run(*command, options=("--sanitize", *options),
                          env={**environment, **variables})

    def check(self, name, variants, words, before=(), **variables):
        """Runs the wrong program and its twin on the real clock and in lockstep, built in each way."""
        def check_one(case):
            variant, options = case
            wrong = self.build(name, variant, variants[variant], [f"-DCASE{len(options)}"])
            result = self.sanitized_run(*before, wrong, options=options, **variables)
            self.assertNotEqual(result.returncode, 0, result.stdout)
            for expected in (*words, marked_line(name)):
                self.assertIn(expected, result.stdout)
            right = self.build(name, variant, variants[variant],
                               ["-DRIGHT", f"-DCASE{len(options)}"])
            result = self.sanitized_run(*before, right, options=options, **variables)
            self.assertEqual((result.returncode, result.stdout), (0, ""))
        clocks = ((),) if before else ((), LOCKSTEP)
        side_by_side(self, check_one, [(variant, clock) for variant in variants
                                       for clock in clocks], at_once=2)

    def test_address_sanitizer_reports_a_receive_that_is_read_early(self):
        self.check("receive_read_early", ADDRESS, ["AddressSanitizer: use-after-poison"])

    def test_thread_sanitizer_reports_a_send_that_is_changed_early(self):
        self.check("send_changed_early", THREAD, ["ThreadSanitizer: data race", "'the NIC, QP ",
                                                  " post_send ", "Write of size 1"])

    def test_thread_sanitizer_reports_a_receive_that_is_read_without_its_completion(self):
        self.check("receive_read_before_poll", THREAD,
                   ["ThreadSanitizer: data race", "'the NIC, QP ", " post_receive "])

    def test_memory_sanitizer_reports_bytes_that_were_not_received(self):
        self.check("unreceived_read", MEMORY,
                   ["MemorySanitizer: use-of-uninitialized-value"], **NOT_FROM_MALLOC)

    def test_valgrind_reports_bytes_that_were_not_received(self):
        self.check("unreceived_read", {"gcc": []},
                   ["Conditional jump or move depends on uninitialised value"], before=VALGRIND)

    def test_without_sanitize_nothing_is_poisoned(self):
        wrong = self.build("receive_read_early", "gcc", ADDRESS["gcc"], ["-DALONE"])
        result = rocemu_run(wrong)
        self.assertEqual((result.returncode, result.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
