"""Runs the examples of README.md and those of examples/, each in a separate project that has only the installed
files, outside of `rocemu run`. Checks that the files that failing examples leave exist and can be opened."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["ROCEMU_BUILD"]
TIMEOUT = 300


def example(language):
    """Returns the code block of README.md in that language."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    assert len(blocks) == 1, language
    return blocks[0]


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.mkdtemp(prefix="rocemu-test-")
        cls.addClassCleanup(shutil.rmtree, scratch)
        cls.prefix = pathlib.Path(scratch) / "prefix"
        cls.project = pathlib.Path(scratch) / "project"
        cls.project.mkdir()
        cls.environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(("ROCEMU", "LD_PRELOAD", "IBV_DRIVERS"))}
        cls.run_there("cmake", "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def run_there(cls, *command, **variables):
        result = subprocess.run([str(word) for word in command], cwd=cls.project, text=True,
                                env={**cls.environment, **variables}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False)
        if result.returncode != 0:
            raise AssertionError(f"{command}: status {result.returncode}\n{result.stdout}")
        return result.stdout

    def test_cpp(self):
        (self.project / "CMakeLists.txt").write_text(example("cmake"))
        (self.project / "my_test.cc").write_text(example("cpp"))
        self.run_there("cmake", "-G", "Ninja", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.run_there("cmake", "--build", "build")
        self.assertIn("[  PASSED  ] 1 test.", self.run_there("build/my_test"))

    def test_python(self):
        (self.project / "test_mine.py").write_text(example("python").replace("18600", self.port()))
        said = self.run_there(sys.executable, "-m", "unittest", "test_mine",
                              PYTHONPATH=str(self.prefix / "share" / "rocemu" / "python"))
        self.assertIn("OK", said)

    # ---- examples/ ----

    def need(self, *command):
        """Skips the test if the tool is missing, or if it is rustup's and has no toolchain."""
        if shutil.which(command[0]) is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
            self.skipTest(f"there is no {command[0]}: apt-get install cargo golang-go")

    def copy(self, name):
        self.__class__.project = pathlib.Path(self.prefix).parent / ("example-" + name)
        shutil.copytree(ROOT / "examples" / name, self.project)
        self.addCleanup(setattr, self.__class__, "project", pathlib.Path(self.prefix).parent / "project")

    def fails(self, *command, **variables):
        with self.assertRaises(AssertionError) as raised:
            self.run_there(*command, **variables)
        return str(raised.exception)

    def assert_page_opens(self, page):
        """Checks that the page shows the failure. If there is a browser, opens the page in it."""
        text = page.read_text()
        self.assertIn("RETRY_EXC_ERR", text)
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if browser is None:
            return
        shown = self.run_there(browser, "--headless", "--no-sandbox", "--disable-gpu",
                               f"--user-data-dir={self.project}/browser", "--virtual-time-budget=5000",
                               "--dump-dom", page.as_uri())
        self.assertRegex(shown, r'id="faults".*<button')  # these buttons are made by the script in the page

    def assert_capture_opens(self, capture):
        self.assertIn("SEND", self.run_there(self.prefix / "bin" / "rocemu", "timeline", capture))
        if shutil.which("tshark"):
            self.assertIn("RC", self.run_there("tshark", "-r", capture))

    def test_pytest_and_what_its_failure_leaves(self):
        try:
            import pytest  # noqa: F401
        except ImportError:
            self.skipTest("there is no pytest: apt-get install python3-pytest")
        self.copy("pytest")
        python = {"PYTHONPATH": str(self.prefix / "share" / "rocemu" / "python"),
                  "PYTHONDONTWRITEBYTECODE": "1"}
        self.assertIn("7 passed", self.run_there(sys.executable, "-m", "pytest", "-q", **python))
        self.assertFalse((self.project / "rocemu-failed").exists())
        said = self.fails(sys.executable, "-m", "pytest", "-q", "fails_on_purpose.py", **python)
        self.assertIn("1 failed", said)
        kept = self.project / "rocemu-failed" / "fails_on_purpose.py_test_loses_everything"
        self.assert_page_opens(kept / "timeline.html")
        self.assert_capture_opens(kept / "recording" / "trace.pcap")
        replayed = self.run_there(self.prefix / "bin" / "rocemu", "replay", kept / "recording")
        self.assertIn("no difference", replayed)

    def test_rust(self):
        self.need("cargo", "--version")
        self.copy("rust")
        said = self.run_there("cargo", "test", "--offline", ROCEMU_COMMAND=str(self.prefix / "bin" / "rocemu"),
                              CARGO_TARGET_DIR=str(self.project / "target"))
        self.assertIn("4 passed; 0 failed", said)

    def test_go(self):
        self.need("go", "version")
        self.copy("go")
        caches = {name: str(self.project / name) for name in ("GOCACHE", "GOPATH")}
        said = self.run_there("go", "test", "-v", "-count=1", "./...", GOFLAGS="-mod=mod", GOPROXY="off", GOTOOLCHAIN="local",
                              ROCEMU_COMMAND=str(self.prefix / "bin" / "rocemu"), **caches)
        self.assertEqual(said.count("--- PASS:"), 4, said)
        self.assertIn("gofmt: nothing", "gofmt: " + (self.run_there("gofmt", "-l", ".") or "nothing"))

    def test_googletest_and_what_its_failure_leaves(self):
        self.copy("googletest")
        self.run_there("cmake", "-G", "Ninja", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.run_there("cmake", "--build", "build")
        self.assertIn("[  PASSED  ] 3 tests.", self.run_there("build/pingpong_test"))
        self.assertIn("[  PASSED  ] 1 test.", self.run_there("build/misuse_test"))
        self.assertIn("[  PASSED  ] 2 tests.", self.run_there("build/latency_test"))
        said = self.fails(self.prefix / "bin" / "rocemu", "run", "--profile", "all", "--", "build/profile_test")
        self.assertRegex(said, r"(?m)^generic +ok$")
        self.assertRegex(said, r"(?m)^mlx5-cx6dx +ok$")
        self.assertRegex(said, r"(?m)^irdma-e810 +FAILED +profile_test: ibv_create_qp: asked for 256 bytes of inline "
                               r"data, the device has 101$")
        said = self.fails("build/pingpong_test", "--gtest_also_run_disabled_tests")
        self.assertIn("[  FAILED  ] Pingpong.DISABLED_LosesEverything", said)
        kept = self.project / "rocemu-failed"
        self.assertEqual([one.name for one in kept.iterdir()], ["Pingpong.DISABLED_LosesEverything"])
        self.assert_page_opens(kept / "Pingpong.DISABLED_LosesEverything" / "timeline.html")
        self.assert_capture_opens(kept / "Pingpong.DISABLED_LosesEverything" / "trace.pcap")

    def test_pipelines_are_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("there is no PyYAML: apt-get install python3-yaml")
        for path in sorted((ROOT / "examples" / "ci").glob("*.yml")):
            with self.subTest(path.name):
                self.assertIn("rocemu", str(yaml.safe_load(path.read_text())))

    @staticmethod
    def port():
        import socket
        with socket.socket() as holder:
            holder.bind(("", 0))
            return str(holder.getsockname()[1])


if __name__ == "__main__":
    unittest.main()
