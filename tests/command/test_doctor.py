"""Tests `rocemu doctor`: each finding with its level, and the exit status that follows from the
findings."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import unittest

from support import BIN, TIMEOUT, CommandTest, give_away


class Doctor(CommandTest):
    def doctor(self, *arguments, **keywords):
        """Returns the findings as {check: (level, message, remedy)}. If a check has several
        findings, returns the worst."""
        result = self.rocemu("doctor", "--json", *arguments, **keywords)
        report = json.loads(result.stdout)
        levels = [check["level"] for check in report["checks"]]
        self.assertEqual(report["ok"], "problem" not in levels)
        self.assertEqual(result.returncode, 0 if report["ok"] else 1)
        order = ["ok", "note", "problem"]
        findings = {}
        for check in sorted(report["checks"], key=lambda check: order.index(check["level"])):
            findings[check["check"]] = (check["level"], check["message"], check["remedy"])
            self.assertTrue(check["level"] != "problem" or check["remedy"], check)
        return findings

    def script(self, text):
        path = self.scratch / "script"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def program(self):
        path = self.scratch / "program"
        shutil.copy(shutil.which("true"), path)
        return path

    def test_nothing_is_wrong_here(self):
        findings = self.doctor("ibv_devices")
        self.assertEqual([f for f in findings.values() if f[0] == "problem"], [])
        for check in ("runtime directory", "daemon", "shim", "provider", "memory access",
                      "shared memory", "open files", "program", "privileges", "libraries"):
            self.assertIn(check, findings)

    def test_text_has_a_line_for_each_finding(self):
        result = self.rocemu("doctor")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for line in result.stdout.splitlines()[:-1]:
            self.assertRegex(line, r"\A(ok|note|problem) +[a-z ]+: .+")

    def test_a_static_program(self):
        static = next((path for path in map(pathlib.Path, ("/sbin/ldconfig", "/sbin/ldconfig.real"))
                       if path.exists() and path.read_bytes()[:4] == b"\x7fELF"), None)
        if static is None:
            self.skipTest("there is no ldconfig, the static program of every Debian")
        self.assertIn("statically linked", self.doctor(static)["program"][1])
        self.assertEqual(self.doctor(static)["program"][0], "problem")

    def test_a_setuid_program(self):
        path = self.program()
        if os.geteuid() == 0:
            give_away(path)
            path.chmod(0o4755)
        else:
            path = "/usr/bin/passwd"
        finding = self.doctor(path)["privileges"]
        self.assertEqual(finding[0], "problem")
        self.assertIn("setuid", finding[1])

    def test_a_program_of_another_word_size(self):
        path = self.program()
        data = bytearray(path.read_bytes())
        data[4] ^= 3  # EI_CLASS: changes 32-bit to 64-bit and the reverse
        path.write_bytes(data)
        self.assertIn("another architecture", self.doctor(path)["program"][1])

    def test_a_program_of_another_c_library(self):
        path = self.program()
        data = path.read_bytes()
        start = data.index(b"/ld-linux")
        path.write_bytes(data[:start] + b"/ld-muslX" + data[start + 9:])
        self.assertIn("linked with musl", self.doctor(path)["program"][1])
        path.write_bytes(data[:start] + b"/ld-other" + data[start + 9:])
        self.assertIn("another dynamic linker", self.doctor(path)["program"][1])

    def test_scripts_count_as_their_interpreter(self):
        self.assertEqual(self.doctor(self.script("#!/bin/sh\n"))["program"][0], "ok")
        self.assertEqual(self.doctor(self.script("#!/usr/bin/env -S sh -e\n"))["program"][0], "ok")
        for text in ("#!/no/such/interpreter\n", "echo no interpreter\n", ""):
            self.assertEqual(self.doctor(self.script(text))["program"][0], "problem")

    def test_a_script_that_is_its_own_interpreter(self):
        path = self.scratch / "script"
        self.assertEqual(self.doctor(self.script(f"#!{path}\n"))["program"][0], "problem")

    def test_a_program_that_is_not_there(self):
        self.assertIn("no such program", self.doctor("rocemu-no-such-program")["program"][1])

    def test_damaged_programs(self):
        whole = self.program().read_bytes()
        for size in (4, 20, 63, 64, 100, 500, 2000):
            path = self.scratch / "program"
            path.write_bytes(whole[:size])
            self.doctor(path)  # whatever it finds, it must not crash
        damaged = bytearray(whole)
        damaged[32:40] = b"\xff" * 8  # e_phoff
        (self.scratch / "program").write_bytes(damaged)
        self.assertEqual(self.doctor(self.scratch / "program")["program"][0], "problem")

    def test_few_open_files(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

        self.assertEqual(self.doctor(preexec_fn=limit)["open files"][0], "problem")

    def test_a_runtime_directory_that_cannot_be_used(self):
        os.mkdir(self.base)
        os.chmod(self.base, 0o755)
        finding = self.doctor()["runtime directory"]
        self.assertEqual(finding[0], "problem")
        self.assertIn("chmod 700", finding[1])
        os.rmdir(self.base)

    def test_missing_parts(self):
        (self.scratch / "bin").mkdir()
        copy = self.scratch / "bin" / "rocemu"
        shutil.copy(BIN / "rocemu", copy)
        result = subprocess.run([copy, "doctor", "--json"], capture_output=True, text=True,
                                env=self.environment, timeout=TIMEOUT, check=False)
        levels = {c["check"]: c["level"] for c in json.loads(result.stdout)["checks"]}
        self.assertEqual(result.returncode, 1)
        for check in ("daemon", "shim", "provider"):
            self.assertEqual(levels[check], "problem")

    def test_remains_of_a_killed_daemon_are_noted(self):
        remains = os.path.join(self.base, "run-1-00000000")
        os.makedirs(remains)
        os.chmod(self.base, 0o700)
        level, message, remedy = self.doctor()["remains"]
        self.assertEqual((level, remedy), ("note", f"rm -r {remains}"))
        self.assertIn(remains, message)
        shutil.rmtree(self.base)


if __name__ == "__main__":
    unittest.main()
