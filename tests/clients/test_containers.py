"""Tests the sidecar pattern of docs/containers.md: one container runs the NIC, and other containers join it over a
shared volume. The containers are like those of Docker: each has its own PID, mount, IPC, UTS, network and user
namespace, its own root directory, and no capabilities. The volume has a different path in each.
"""
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from rocemu import BIN, run, temporary_directory

NAMESPACES = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount", "--ipc", "--uts", "--net"]
NO_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
# Makes the root directory $1, with the directory $2 as its /nic, and runs the remaining arguments there.
ENTER = """
root=$1 volume=$2; shift 2
mount -t tmpfs none "$root"
for directory in usr bin sbin lib lib32 lib64 etc dev rocemu; do
  source=/$directory; [ $directory != rocemu ] || source=$ROCEMU_BUILD
  [ -e "$source" ] || continue
  mkdir "$root/$directory"; mount --rbind "$source" "$root/$directory"
done
mkdir "$root/nic" "$root/proc" "$root/tmp" "$root/sys"
mount --bind "$volume" "$root/nic"
mount -t proc none "$root/proc"
ip link set lo up
exec chroot "$root" "$@"
"""


def why_no_containers():
    """Returns the reason why this process cannot create the namespaces, or "" if it can."""
    result = run(*NAMESPACES, "mount", "-t", "proc", "none", "/proc")
    return "" if result.returncode == 0 else result.stdout


class Sidecar(unittest.TestCase):
    def setUp(self):
        if why := why_no_containers():
            self.skipTest(why)
        directory = temporary_directory()
        self.addCleanup(directory.cleanup)
        self.scratch = pathlib.Path(directory.name)
        self.volume = self.scratch / "v"
        self.volume.mkdir(mode=0o700)
        for library in (BIN.parent / "lib" / "rocemu").iterdir():
            if library.name.startswith("librocemu"):
                shutil.copy(library, self.volume)
        self.nic = subprocess.Popen(self.container("nic", "/rocemu/bin/rocemud", "--dir", "/nic/rocemu/shared"),
                                    env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(self.end_nic)
        while not (self.volume / "rocemu" / "shared" / "control").exists():
            self.assertIsNone(self.nic.poll())
            time.sleep(0.02)

    def end_nic(self):
        self.nic.send_signal(signal.SIGKILL)  # kills unshare, and its child ends with it
        self.nic.wait(60)

    @staticmethod
    def environment():
        return {"PATH": "/rocemu/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "ROCEMU_BUILD": str(BIN.parent)}

    def container(self, name, *command):
        root = self.scratch / name
        root.mkdir()
        return [*NAMESPACES, "sh", "-ec", ENTER, "sh", root, self.volume, *NO_RIGHTS, *command]

    def run_in_container(self, *command, **variables):
        result = run(*self.container("program", *command), env={**self.environment(), **variables}, timeout=120)
        self.assertEqual(result.returncode, 0, result.stdout)
        return result.stdout

    # This cannot use `rocemu wait --listening`, which asks the NIC: the NIC is in another network namespace.
    PINGPONG = """ibv_rc_pingpong -g 0 -p 18515 -c & server=$!
        until ibv_rc_pingpong -g 0 -p 18515 -c -d rocemu1 127.0.0.1; do kill -0 $server; sleep 0.05; done
        wait $server"""

    def test_rocemu_run_joins_the_nic_of_another_container(self):
        output = self.run_in_container("rocemu", "run", "--", "sh", "-ec", self.PINGPONG, XDG_RUNTIME_DIR="/nic")
        self.assertEqual(output.count("1000 iters in"), 2, output)

    def test_an_image_needs_two_variables_and_no_rocemu(self):
        """The image has nothing of rocemu: the preload library and the provider are in the volume."""
        output = self.run_in_container("sh", "-ec", self.PINGPONG, LD_PRELOAD="/nic/librocemu.so",
                                       ROCEMU_DIR="/nic/rocemu/shared")
        self.assertEqual(output.count("1000 iters in"), 2, output)

    def test_programs_have_no_rights(self):
        output = self.run_in_container("grep", "-E", "^(CapBnd|CapEff|NoNewPrivs)", "/proc/self/status")
        self.assertEqual([line.split()[1] for line in output.splitlines()], ["0" * 16, "0" * 16, "1"])


if __name__ == "__main__":
    unittest.main()
