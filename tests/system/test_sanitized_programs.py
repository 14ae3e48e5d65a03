"""Tests programs that are built with a sanitizer: they run unmodified under `rocemu run`, the sanitizer finds their
errors, and it reports no errors of rocemu."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from rocemu import HERE, ROCEMU, rocemu_run, run, temporary_directory

# The options with which each compiler links its run-time as a library or statically. clang links it statically by
# default.
GCC = {
    "asan": ["-fsanitize=address"],
    "asan-static": ["-fsanitize=address", "-static-libasan"],
    "asan-ubsan": ["-fsanitize=address,undefined"],
    "ubsan": ["-fsanitize=undefined"],
    "lsan": ["-fsanitize=leak"],
    "tsan": ["-fsanitize=thread"],
}
CLANG = {
    "asan": ["-fsanitize=address"],
    "asan-shared": ["-fsanitize=address", "-shared-libasan"],
    "ubsan": ["-fsanitize=undefined"],
    "lsan": ["-fsanitize=leak"],
    "tsan": ["-fsanitize=thread"],
}
FINDS_LEAKS = ("asan", "asan-static", "asan-ubsan", "asan-shared", "lsan")


class SanitizedPrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = temporary_directory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = pathlib.Path(directory.name)
        cls.programs = {}
        for compiler, variants in (("g++", GCC), ("clang++", CLANG)):
            for name, flags in variants.items() if shutil.which(compiler) else ():
                cls.programs[f"{compiler} {name}"] = cls.build(compiler, f"{compiler}-{name}", flags)

    @classmethod
    def build(cls, compiler, name, flags):
        program = cls.directory / name
        if "-shared-libasan" in flags:
            library = run(compiler, "-print-file-name=libclang_rt.asan-x86_64.so").stdout.strip()
            flags = [*flags, f"-Wl,-rpath,{os.path.dirname(library)}"]
        run(compiler, "-std=c++20", "-g1", *flags, HERE / "programs" / "sanitized.cc", "-o", program,
            "-libverbs", check=True)
        return program

    def of_address_sanitizer(self):
        programs = {name: path for name, path in self.programs.items() if "asan" in name}
        self.assertIn("g++ asan", programs)
        return programs

    def environment(self, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.endswith("SAN_OPTIONS")}
        return {**environment, **variables}

    def test_each_runs_and_reports_nothing_of_ours(self):
        for name, program in self.programs.items():
            with self.subTest(name):
                result = rocemu_run(program, env=self.environment())
                self.assertEqual((result.returncode, result.stdout), (0, "right\n"))

    def test_a_leak_of_the_programs_own_is_all_that_is_reported(self):
        for name, program in self.programs.items():
            if name.split()[1] in FINDS_LEAKS:
                with self.subTest(name):
                    result = rocemu_run(program, "leak", env=self.environment())
                    self.assertNotEqual(result.returncode, 0)
                    self.assertIn("SUMMARY: ", result.stdout)
                    self.assertIn("77 byte(s) leaked in 1 allocation(s)", result.stdout)

    def test_an_overflow_is_found(self):
        for name, program in self.of_address_sanitizer().items():
            with self.subTest(name):
                result = rocemu_run(program, "overflow", env=self.environment())
                self.assertIn("heap-buffer-overflow", result.stdout)
                self.assertNotEqual(result.returncode, 0)

    def test_the_users_own_options_count(self):
        program = self.programs["g++ asan"]
        for options in ("detect_leaks=0", "detect_leaks=1:detect_leaks=0", "exitcode=0"):
            result = rocemu_run(program, "leak", env=self.environment(ASAN_OPTIONS=options))
            self.assertEqual(result.returncode, 0, result.stdout)
        refused = rocemu_run(program, env=self.environment(ASAN_OPTIONS="verify_asan_link_order=1"))
        self.assertIn("ASan runtime does not come first", refused.stdout)

    def test_a_script_may_set_them_anew_and_run_a_program_later(self):
        for name, program in self.of_address_sanitizer().items():
            with self.subTest(name):
                script = f"ibv_devices >/dev/null; export ASAN_OPTIONS=exitcode=7; exec {program} leak"
                result = rocemu_run("sh", "-c", script, env=self.environment())
                self.assertEqual(result.returncode, 7, result.stdout)
                self.assertIn("77 byte(s) leaked", result.stdout)
                result = rocemu_run("env", "-u", "ASAN_OPTIONS", program, env=self.environment())
                self.assertEqual((result.returncode, result.stdout), (0, "right\n"))

    def test_a_program_with_default_options_of_its_own(self):
        program = self.build("g++", "own-options", ["-fsanitize=address", "-DOWN_OPTIONS"])
        result = rocemu_run(program, "leak", env=self.environment())
        self.assertEqual((result.returncode, result.stdout), (0, "right\n"))
        self.assertEqual(self.doctor(program)[0], "note")

    def test_a_run_inside_another(self):
        result = rocemu_run(ROCEMU, "run", "--", self.programs["g++ asan"], env=self.environment())
        self.assertEqual((result.returncode, result.stdout), (0, "right\n"))

    def doctor(self, program, **variables):
        """Returns level, message and remedy of the doctor's finding about sanitizers."""
        result = subprocess.run([ROCEMU, "doctor", "--json", program], text=True, check=False,
                                stdout=subprocess.PIPE, env=self.environment(**variables))
        found = [check for check in json.loads(result.stdout)["checks"]
                 if check["check"] == "sanitizers"]
        return (found[0]["level"], found[0]["message"], found[0]["remedy"]) if found else None

    def test_doctor_knows_them(self):
        for name, program in self.of_address_sanitizer().items():
            level, message, remedy = self.doctor(program)
            self.assertEqual((level, remedy), ("ok", ""), name)
            self.assertIn("AddressSanitizer", message)
        level, message, remedy = self.doctor(self.programs["g++ asan"],
                                             ASAN_OPTIONS="a=1:verify_asan_link_order=1")
        self.assertEqual(level, "problem")
        self.assertIn("remove verify_asan_link_order from ASAN_OPTIONS", remedy)
        self.assertEqual(self.doctor(self.programs["g++ tsan"])[0], "note")
        self.assertIsNone(self.doctor("/bin/true"))


if __name__ == "__main__":
    unittest.main()
