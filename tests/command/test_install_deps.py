"""Tests scripts/install-deps with scripts that stand in for the package managers of other distributions."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "install-deps"


class InstallDeps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rocemu-deps-")
        self.addCleanup(folder.cleanup)
        self.bin = pathlib.Path(folder.name)
        self.calls = self.bin / "calls"
        for tool in ("bash", "env", "grep", "cat"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.stand_in("sudo", 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"')

    def stand_in(self, name, script):
        path = self.bin / name
        path.write_text(f"#!{shutil.which('sh')}\n{script}\n")
        path.chmod(0o755)

    def recorded(self, name, also=":"):
        self.stand_in(name, f'echo "{name} $*" >>{self.calls}\n{also}')

    def run_script(self, *arguments):
        return subprocess.run([shutil.which("bash"), SCRIPT, *arguments], env={"PATH": str(self.bin)},
                              capture_output=True, text=True, timeout=60, check=False)

    def installed(self):
        lines = [line for line in self.calls.read_text().splitlines() if " install " in line or " add " in line]
        return " ".join(lines).split()

    def test_dnf_installs_what_rpm_does_not_know(self):
        self.recorded("dnf")
        self.stand_in("rpm", 'test "$3" = cmake')  # rpm -q --whatprovides NAME
        result = self.run_script("--demo")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        words = self.installed()
        self.assertIn("rdma-core-devel", words)
        self.assertIn("libibverbs-utils", words)
        self.assertIn("ccache", words)
        self.assertNotIn("cmake", words)

    def test_apk_installs_what_is_not_there(self):
        self.recorded("apk", 'test "$1" != info')
        result = self.run_script("--test")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("apk update -q", self.calls.read_text())
        self.assertIn("rdma-core-dev", self.installed())
        self.assertIn("tshark", self.installed())

    def test_nothing_is_asked_of_the_network_when_nothing_is_missing(self):
        self.recorded("apk")
        self.assertEqual(self.run_script("--demo").returncode, 0)
        self.assertNotIn("update", self.calls.read_text())

    def test_a_failure_of_the_package_manager_is_one(self):
        self.recorded("dnf", "exit 7")
        self.stand_in("rpm", "exit 1")
        self.assertEqual(self.run_script().returncode, 7)

    def test_without_any_it_says_what_must_be_there(self):
        result = self.run_script()
        self.assertEqual(result.returncode, 0)
        self.assertIn("neither apt-get, dnf nor apk", result.stderr)
        self.assertIn("libibverbs-dev", result.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root needs no sudo")
    def test_without_sudo_it_says_what_root_is_to_do(self):
        (self.bin / "sudo").unlink()
        self.recorded("dnf")
        self.stand_in("rpm", "exit 1")
        self.assertIn("as root, do: dnf install", self.run_script().stderr)


if __name__ == "__main__":
    unittest.main()
