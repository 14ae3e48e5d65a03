"""Runs ibv_rc_pingpong in restricted environments: without privileges, in a user namespace, on one processor, and
many at the same time."""
import os
import shutil
import subprocess
import unittest

from rocemu import BIN, PAIR, ROCEMU, pingpong_pair, rocemu_run, run, temporary_directory


def why_no_user_namespaces():
    """Returns the reason why this process cannot create a user namespace, or "" if it can. In a chroot and in
    some containers, no process can."""
    result = run("unshare", "-Ur", "true")
    return "" if result.returncode == 0 else result.stdout.strip()


class Environments(unittest.TestCase):
    def check(self, result):
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertEqual(result.stdout.count("iters in"), 2, result.stdout)

    def test_an_unprivileged_user_without_capabilities(self):
        if os.geteuid() != 0:  # a child of an ordinary user, too, is without privileges
            return self.check(rocemu_run(*pingpong_pair("-c")))
        with temporary_directory() as directory:
            # Every user may read there. A build tree may be in a home directory that only root can read.
            os.chmod(directory, 0o755)
            run("cmake", "--install", BIN.parent, "--prefix", directory, check=True)
            pair = [PAIR[0], shutil.copy(PAIR[1], directory)]
            self.check(run("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                           "--inh-caps=-all", "--bounding-set=-all", f"{directory}/bin/rocemu",
                           "run", "--private", "--", *pair, *pingpong_pair("-c")[len(PAIR):],
                           cwd="/"))

    @unittest.skipIf(why_no_user_namespaces(), why_no_user_namespaces())
    def test_inside_a_user_namespace(self):
        self.check(rocemu_run(*pingpong_pair("-c"), prefix=("unshare", "-Ur")))

    @unittest.skipIf(why_no_user_namespaces(), why_no_user_namespaces())
    def test_a_client_in_a_user_namespace_of_its_own(self):
        self.check(rocemu_run("unshare", "-Ur", *pingpong_pair("-c")))

    def test_on_one_core(self):
        self.check(rocemu_run(*pingpong_pair("-n", "1000"), prefix=("taskset", "-c", "0")))
        self.check(rocemu_run(*pingpong_pair("-n", "1000", "-e"), prefix=("taskset", "-c", "0")))

    def test_beside_a_busy_machine(self):
        load = subprocess.Popen(["stress-ng", "--quiet", "--cpu", "4", "--timeout", "60"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.check(rocemu_run(*pingpong_pair("-c", "-n", "500")))
            self.check(rocemu_run(*pingpong_pair("-e", "-n", "500")))
        finally:
            load.terminate()
            load.wait()

    def test_fifty_at_once(self):
        processes = []
        for _ in range(50):
            command = [ROCEMU, "run", "--private", "--", *pingpong_pair("-c", "-n", "200")]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT, text=True))
        failures = []
        for process in processes:
            output, _ = process.communicate()
            if process.returncode != 0 or output.count("iters in") != 2:
                failures.append(f"status {process.returncode}:\n{output}")
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
