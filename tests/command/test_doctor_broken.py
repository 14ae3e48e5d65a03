"""Tests `rocemu doctor` on machines and with programs that are really broken: it must name the cause and a
remedy.

Each test makes its situation: it copies and damages an installation, mounts a file system in a namespace,
installs a seccomp filter, or builds a program. The asserted words are those on which a user acts.
"""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import unittest

from support import BIN, TIMEOUT, CommandTest, give_away

LIBRARIES = BIN.parent / "lib" / "rocemu"
PROVIDER_NAMES = "librocemu-rdmav*.so"
X86_64, ARM64 = 0xC000003E, 0xC00000B7
AUDIT_ARCH = {"x86_64": X86_64, "aarch64": ARM64}[os.uname().machine]
PROCESS_VM_READV, PROCESS_VM_WRITEV, MEMFD_CREATE = \
    (310, 311, 319) if AUDIT_ARCH == X86_64 else (270, 271, 279)


def refuse_calls(*numbers):
    """Installs a seccomp filter in this process with which these system calls fail with EPERM."""
    load, equal, leave = 0x20, 0x15, 0x06  # BPF_LD+W+ABS, BPF_JMP+JEQ+K, BPF_RET+K
    program = [(load, 0, 0, 0)]
    for i, number in enumerate(numbers):
        program.append((equal, len(numbers) - i, 0, number))
    program += [(leave, 0, 0, 0x7FFF0000), (leave, 0, 0, 0x00050001)]  # allow; EPERM
    code = b"".join(struct.pack("HBBI", *line) for line in program)
    buffer = ctypes.create_string_buffer(code)
    filter_program = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privs, set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(no_new_privs, 1, 0, 0, 0) != 0 or \
            libc.prctl(set_seccomp, mode_filter, filter_program) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


class BrokenDoctor(CommandTest):
    def setUp(self):
        super().setUp()
        self.prefix = self.scratch / "prefix"
        (self.prefix / "bin").mkdir(parents=True)
        for name in ("rocemu", "rocemud"):
            shutil.copy(BIN / name, self.prefix / "bin")
        self.plugins = self.prefix / "lib" / "rocemu"
        shutil.copytree(LIBRARIES, self.plugins, symlinks=True)

    def providers(self):
        return list(self.plugins.glob(PROVIDER_NAMES))

    def doctor(self, *arguments, status=1, before=(), env=None, **keywords):
        """Returns the findings other than "ok", as {check: (level, text with remedy)}."""
        result = subprocess.run([*before, self.prefix / "bin" / "rocemu", "doctor", "--json", *arguments],
                                capture_output=True, text=True, timeout=TIMEOUT, check=False,
                                env={**self.environment, **(env or {})}, **keywords)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return {check["check"]: (check["level"], f"{check['message']}; {check['remedy']}")
                for check in json.loads(result.stdout)["checks"] if check["level"] != "ok"}

    def assert_finding(self, findings, check, level, *parts):
        self.assertIn(check, findings)
        self.assertEqual(findings[check][0], level, findings)
        for part in parts:
            self.assertIn(part, findings[check][1])

    def build(self, source, name, *options, compiler="cc"):
        path = self.scratch / name
        subprocess.run([compiler, "-x", "c", "-", "-x", "none", "-o", path, *options], input=source,
                       text=True, check=True, capture_output=True, timeout=TIMEOUT)
        return path

    def in_namespace(self, script):
        """Returns a command line that, as root of a user and mount namespace, runs the script and then
        another command."""
        probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
        if probe.returncode != 0:
            self.skipTest("there are no user namespaces here")
        return ["unshare", "-rm", "sh", "-ec", f'{script}\nexec "$@"', "sh"]

    # ---- The installation -------------------------------------------------------------------

    def test_a_provider_for_no_libibverbs_of_this_machine(self):
        for provider in self.providers():
            provider.rename(provider.with_name("librocemu-rdmav1.so"))
        self.assert_finding(self.doctor(), "provider", "problem", "is missing",
                            "install a rocemu that knows this libibverbs")

    def test_a_library_that_the_provider_needs_is_missing(self):
        library = self.build("int f(void) { return 0; }", "libgone.so", "-shared", "-fPIC",
                             "-Wl,-soname,libgone.so.7")
        for provider in self.providers():
            self.build("int f(void); int g(void) { return f(); }", provider, "-shared", "-fPIC",
                       "-Wl,--no-as-needed", library)
        self.assert_finding(self.doctor(), "provider", "problem", "libgone.so.7",
                            "install the package that has libgone.so.7")

    def test_a_provider_of_a_newer_c_library(self):
        script = self.scratch / "versions"
        script.write_text("GLIBC_2.99 { global: newer; };\n")
        newer = self.build("int newer(void) { return 0; }", "libc.so.6", "-shared", "-fPIC", "-nostdlib",
                           "-Wl,-soname,libc.so.6", f"-Wl,--version-script={script}")
        for provider in self.providers():
            self.build("int newer(void); int g(void) { return newer(); }", provider, "-shared", "-fPIC",
                       "-nostdlib", newer)
        self.assert_finding(self.doctor(), "provider", "problem", "GLIBC_2.99", "newer C or C++ library",
                            "install rocemu again: the package for this distribution")

    def test_a_provider_that_was_built_with_musl(self):
        for provider in self.providers():
            self.build("int g(void) { return 0; }", provider, "-shared", "-fPIC", "-nostdlib",
                       "-Wl,--no-as-needed",
                       self.build("int f;", "libc.so", "-shared", "-nostdlib",
                                  "-Wl,-soname,libc.musl-x86_64.so.1"))
        self.assert_finding(self.doctor(), "provider", "problem", "libc.musl-x86_64.so.1", "built with musl",
                            "use a rocemu that was built with this C library")

    def test_a_provider_of_another_layout_class(self):
        # This stands for a libibverbs of another release, which expects the extended queue pair elsewhere and
        # does not find it.
        other = self.build("void *ibv_qp_to_qp_ex(void *qp) { return 0; }", "libother.so", "-shared",
                           "-fPIC")
        real = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True,
                              env={**os.environ, "PATH": f"{os.environ['PATH']}:/sbin:/usr/sbin"}).stdout
        real = next(line.split("=> ")[1] for line in real.splitlines() if "libibverbs.so.1 " in line)
        copy = self.scratch / "libraries" / "libibverbs.so.1"
        copy.parent.mkdir()
        data = pathlib.Path(real).resolve().read_bytes()
        self.assertEqual(data.count(b"ibv_qp_to_qp_ex\0"), 1)
        # In this copy of libibverbs, the function has another name, so callers find the function of `other`,
        # which is loaded with it.
        copy.write_bytes(data.replace(b"ibv_qp_to_qp_ex\0", b"ibv_qp_to_qp_xx\0"))
        self.assert_finding(self.doctor(env={"LD_LIBRARY_PATH": str(copy.parent), "LD_PRELOAD": str(other)}),
                            "provider", "problem", f"{copy} is a libibverbs that rocemu", "does not know",
                            "install a rocemu that knows this libibverbs")

    def test_a_damaged_shim(self):
        (self.plugins / "librocemu.so").unlink()
        (self.plugins / "librocemu.so").write_bytes(b"no library")
        self.assert_finding(self.doctor(), "shim", "problem", "cannot be loaded", "install rocemu again")

    def test_plugins_on_a_file_system_that_is_mounted_noexec(self):
        copy = f'"{self.scratch}/plugins"'
        before = self.in_namespace(f'cp -a "{self.plugins}" {copy}\n'
                                   f'mount -t tmpfs -o noexec tmpfs "{self.plugins}"\n'
                                   f'cp -a {copy}/. "{self.plugins}"')
        self.assert_finding(self.doctor(before=before), "shim", "problem", "failed to map segment",
                            "mounted noexec", "mount -o remount,exec")

    def test_paths_with_spaces_and_colons_work(self):
        moved = self.scratch / "a place: with; both"
        self.prefix.rename(moved)
        self.prefix = moved
        self.assertEqual({check: finding for check, finding in self.doctor(status=0).items()
                          if finding[0] == "problem"}, {})

    def test_a_path_with_a_space_below_a_runtime_directory_with_one(self):
        moved = self.scratch / "a place"
        self.prefix.rename(moved)
        self.prefix = moved
        runtime = self.scratch / "r d"
        runtime.mkdir(mode=0o700)
        findings = self.doctor(env={"XDG_RUNTIME_DIR": str(runtime)})
        self.assert_finding(findings, "device", "problem", "set XDG_RUNTIME_DIR to a directory without")

    # ---- The machine ------------------------------------------------------------------------

    def test_no_libibverbs(self):
        before = self.in_namespace(
            'for f in $(ldconfig -p | sed -n "s/.*libibverbs.so.1 .*=> //p"); do\n'
            '  mount --bind /dev/null "$(realpath "$f")"\ndone')
        self.assert_finding(self.doctor(before=before), "provider", "problem", "libibverbs.so.1",
                            "apt install libibverbs1")

    def test_no_directory_of_other_providers(self):
        before = self.in_namespace("mount -t tmpfs tmpfs /etc")
        self.assert_finding(self.doctor(before=before, status=0), "device", "note",
                            "mkdir /etc/libibverbs.d")

    def test_seccomp_without_process_vm_readv(self):
        findings = self.doctor(preexec_fn=lambda: refuse_calls(PROCESS_VM_READV, PROCESS_VM_WRITEV),
                               status=0)
        self.assert_finding(findings, "memory access", "note", "seccomp filter", "--cap-add=SYS_PTRACE")

    def test_seccomp_without_memfd_create(self):
        findings = self.doctor(preexec_fn=lambda: refuse_calls(MEMFD_CREATE))
        self.assert_finding(findings, "shared memory", "problem", "memfd_create", "seccomp")

    # ---- The program ------------------------------------------------------------------------

    def test_a_static_program(self):
        program = self.build("int main(void) { return 0; }", "static", "-static")
        self.assert_finding(self.doctor(program), "program", "problem", "statically linked",
                            "link it dynamically")

    def test_a_static_program_in_go(self):
        # rocemu recognizes a Go program by this text, which the Go linker puts into each program.
        program = self.build('const char info[] __attribute__((used)) = "\\xff Go buildinf:";\n'
                             "int main(void) { return 0; }", "static-go", "-static")
        self.assert_finding(self.doctor(program), "program", "problem", "written in Go", "CGO_ENABLED=1")

    @unittest.skipIf(shutil.which("musl-gcc") is None, "musl-tools is not installed")
    def test_a_program_linked_with_musl(self):
        program = self.build("int main(void) { return 0; }", "musl", compiler="musl-gcc")
        self.assert_finding(self.doctor(program), "program", "problem", "linked with musl",
                            "build rocemu on a machine with musl")

    def test_a_setuid_program(self):
        program = self.scratch / "setuid"
        shutil.copy(shutil.which("true"), program)
        give_away(program)
        program.chmod(0o4755)
        self.assert_finding(self.doctor(program), "privileges", "problem", "setuid", "run a copy without")

    def test_address_sanitizer_that_insists_on_being_first(self):
        program = self.build("int main(void) { return 0; }", "asan", "-fsanitize=address")
        findings = self.doctor(program, env={"ASAN_OPTIONS": "verify_asan_link_order=1"})
        self.assert_finding(findings, "sanitizers", "problem", "verify_asan_link_order=1",
                            "remove verify_asan_link_order from ASAN_OPTIONS")

    def test_a_program_on_a_file_system_that_is_mounted_noexec(self):
        mounted = self.scratch / "mounted"
        mounted.mkdir()
        before = self.in_namespace(f'mount -t tmpfs -o noexec tmpfs "{mounted}"\n'
                                   f'cp {shutil.which("true")} "{mounted}/program"')
        self.assert_finding(self.doctor(mounted / "program", before=before), "program", "problem",
                            "mounted noexec", "copy the file to another")


class Paths(CommandTest):
    def test_programs_run_with_plugins_in_a_path_with_spaces_and_colons(self):
        prefix = self.scratch / "my rocemu: it;self"
        (prefix / "bin").mkdir(parents=True)
        for name in ("rocemu", "rocemud"):
            shutil.copy(BIN / name, prefix / "bin")
        shutil.copytree(LIBRARIES, prefix / "lib" / "rocemu", symlinks=True)

        def run(*arguments):
            return subprocess.run([prefix / "bin" / "rocemu", *arguments], capture_output=True, text=True,
                                  timeout=TIMEOUT, env=self.environment, check=False)

        listed = run("run", "--", "ibv_devices")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        self.assertIn("rocemu1", listed.stdout)
        # In lockstep, a second library is loaded. Inside another run, no library is loaded twice.
        virtual = run("run", "--lockstep", "--", "sh", "-c",
                      f'"{prefix}/bin/rocemu" show >/dev/null; echo "$LD_PRELOAD"')
        self.assertEqual((virtual.returncode, virtual.stderr), (0, ""))
        self.assertEqual(virtual.stdout.count("librocemu"), 2)
        # A killed daemon leaves its link behind, and the next daemon removes the link.
        up = run("up")
        self.assertEqual(up.returncode, 0, up.stderr)
        self.assertEqual(run("run", "--", "true").returncode, 0)
        status = json.loads(run("show", "--json").stdout)
        os.kill(status["pid"], signal.SIGKILL)
        up = run("up")
        self.assertEqual(up.returncode, 0, up.stderr)
        self.assertEqual(run("run", "--", "true").returncode, 0)
        self.assertEqual(run("down").returncode, 0)


if __name__ == "__main__":
    unittest.main()
