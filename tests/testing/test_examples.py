"""The examples of README.md in a project of its own that has only what is installed, and outside of
`rocemu run`."""
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
    """The block of that language in README.md."""
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

    @staticmethod
    def port():
        import socket
        with socket.socket() as holder:
            holder.bind(("", 0))
            return str(holder.getsockname()[1])


if __name__ == "__main__":
    unittest.main()
