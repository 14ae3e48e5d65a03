"""Tests `cmake --install`: the installed files work in their place, also through a symbolic link."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

from support import PYTHON, TIMEOUT, CommandTest

PRINT_PRELOAD = "import os; print(os.environ['LD_PRELOAD'])"


class Install(CommandTest):
    def setUp(self):
        super().setUp()
        self.prefix = self.scratch / "prefix"
        subprocess.run(["cmake", "--install", os.environ["ROCEMU_BUILD"], "--prefix", self.prefix],
                       check=True, capture_output=True, timeout=TIMEOUT)

    def run_installed(self, *arguments, program=None):
        result = subprocess.run([program or self.prefix / "bin" / "rocemu", *arguments],
                                capture_output=True, text=True, env=self.environment,
                                timeout=TIMEOUT, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_runs_with_the_installed_parts(self):
        preload = self.run_installed("run", "--", *PYTHON, PRINT_PRELOAD).strip()
        shim = pathlib.Path(preload.split(":")[-1])
        self.assertTrue(shim.is_relative_to(self.prefix), shim)
        self.assertIn(f"{self.prefix}/bin/rocemud", self.run_installed("doctor"))

    def test_the_scenarios_are_installed(self):
        for one in json.loads(self.run_installed("scenarios", "--json")):
            self.assertTrue(pathlib.Path(one["file"]).is_relative_to(self.prefix), one)
            self.run_installed("check", one["name"])

    def test_runs_through_a_link(self):
        link = self.scratch / "rocemu"
        link.symlink_to(self.prefix / "bin" / "rocemu")
        self.run_installed("run", "--", "true", program=link)

    @unittest.skipIf(shutil.which("ibv_devices") is None, "ibverbs-utils is not installed")
    def test_programs_find_the_installed_provider(self):
        self.assertIn("rocemu1", self.run_installed("run", "--", "ibv_devices"))

    def file_named(self, name):
        return next(self.prefix.rglob(name))

    def test_every_command_has_a_manual_page_of_its_help(self):
        for name in self.commands():
            page = self.file_named(f"rocemu-{name}.1").read_text()
            self.assertIn(".SH SYNOPSIS", page)
            for option in self.options_of(name):
                self.assertIn(option.replace("-", "\\-"), page)
        for program in ("rocemu", "rocemud", "vipl_pingpong"):
            self.file_named(f"{program}.1")

    def commands(self):
        text = self.run_installed("--help").split("usage:")[1].split("\n\n")[1]
        return [line.split()[0] for line in text.splitlines() if line.split()[0] != "help"]

    def options_of(self, command):
        return re.findall(r"^  (--[\w-]+)", self.run_installed(command, "--help-all"), re.M)

    def completed(self, *words):
        """Returns bash's completions for the last word."""
        script = (f"source {shlex.quote(str(self.prefix))}/share/bash-completion/completions/rocemu\n"
                  f"COMP_WORDS=({' '.join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}\n"
                  '_rocemu; printf "%s\\n" "${COMPREPLY[@]}"')
        path = f"{self.prefix / 'bin'}:{os.environ['PATH']}"
        result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=TIMEOUT,
                                env={**self.environment, "PATH": path}, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.split()

    @unittest.skipIf(shutil.which("bash") is None, "bash is not installed")
    def test_bash_completes_commands_options_and_values(self):
        self.assertLessEqual(set(self.commands()), set(self.completed("rocemu", "")))
        for name in self.commands():
            self.assertLessEqual(set(self.options_of(name)), set(self.completed("rocemu", name, "-")))
        self.assertEqual(self.completed("rocemu", "run", "--topology", "f"), ["flat"])
        self.assertEqual(self.completed("rocemu", "up", "--scenario", "rtu"), ["rtu-lost"])
        self.assertIn("sh", self.completed("rocemu", "run", "--udp", "--", "sh"))

    @unittest.skipIf(shutil.which("zsh") is None, "zsh is not installed")
    def test_zsh_reads_its_completion(self):
        subprocess.run(["zsh", "-n", self.file_named("_rocemu")], check=True, timeout=TIMEOUT)

    @unittest.skipIf(shutil.which("fish") is None, "fish is not installed")
    def test_fish_reads_its_completion(self):
        subprocess.run(["fish", "-n", self.file_named("rocemu.fish")], check=True, timeout=TIMEOUT)

    @unittest.skipIf(shutil.which("pkg-config") is None, "pkg-config is not installed")
    def test_a_program_is_built_by_pkg_config_and_runs(self):
        moved = self.scratch / "moved"
        self.prefix.rename(moved)
        self.prefix = moved
        source = self.scratch / "program.cc"
        source.write_text("#include <rocemu/testing.h>\n"
                          "int main() { rocemu::testing::Fabric nic; return nic.rules().size(); }\n")
        folder = self.file_named("rocemu.pc").parent
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "rocemu"], text=True, check=True,
                               capture_output=True, env={**os.environ, "PKG_CONFIG_PATH": str(folder)})
        program = self.scratch / "program"
        subprocess.run(["c++", "-std=c++20", source, "-o", program, *flags.stdout.split()], check=True,
                       timeout=TIMEOUT)
        self.run_installed(program=program)


class Uninstall(CommandTest):
    def test_removes_everything_but_what_others_put_there(self):
        root = self.scratch / "root"
        build = pathlib.Path(os.environ["ROCEMU_BUILD"])
        manifest = self.scratch / "manifest"
        subprocess.run(["cmake", "--install", build, "--prefix", root / "mine"], check=True,
                       capture_output=True, timeout=TIMEOUT)
        shutil.move(build / "install_manifest.txt", manifest)
        other = root / "mine" / "share" / "man" / "man1" / "other.1"
        other.write_text("")
        source = pathlib.Path(__file__).resolve().parents[2]
        subprocess.run(["cmake", f"-DMANIFEST={manifest}", "-P", source / "packaging" / "uninstall.cmake"],
                       check=True, capture_output=True, timeout=TIMEOUT)
        left = [path for path in root.rglob("*") if not path.is_dir()]
        self.assertEqual(left, [other])
        self.assertFalse((root / "mine" / "share" / "rocemu").exists())


if __name__ == "__main__":
    unittest.main()
