"""Tests that valgrind finds nothing in the provider and the shim: no uninitialized byte that a verb passes on,
and no lost memory. Runs stock programs, and our own tests of the provider and of the man pages, each as one
process."""
import re
import unittest

from rocemu import BIN, CM_PAIR, HERE, NO_CLOCK, PAIR, free_port, rocemu_run, run

VALGRIND = ["valgrind", "--quiet", "--error-exitcode=99",
            f"--suppressions={HERE / 'stock_programs.supp'}"]
# For programs that destroy what they create. perftest, for example, does not.
WITH_LEAKS = [*VALGRIND, "--leak-check=full", "--show-leak-kinds=definite,indirect",
              "--errors-for-leak-kinds=none"]

# Tests that pass wrong addresses on purpose, so valgrind reports them.
ABOUT_BAD_ADDRESSES = ["*.ABad*", "*BadPath*", "Carry*.*", "RdmaCmCommands.ResponsesNeedRoomAndAnAddress",
                       "RdmaCmCommands.AnOptionsValueMustBeThere",
                       "SharedMemory.IsUnmappedOnlyWhereItWasMapped"]
# These tests remove the device, so each of them has a separate NIC.
REMOVALS = "DeviceRemoval.*"
# These tests fork. With --leak-check, each child searches all memory of its parent when it exits. After some hundred
# tests in one process, that takes half a minute; in a separate process, it takes no time.
OF_TWO_PROCESSES = ["PeerProcess.*", "ImportInAnotherProcess.*"]
# Tests that fail because valgrind simulates the machine: it has stacks in anonymous memory, and keeps the limit of
# descriptors itself.
ABOUT_THE_MACHINE = ["*MemoryMap.HasTheHeapAndNotTheStack*", "CompChannel.CreationReturnsNullOnFailure",
                     "*.WithoutDescriptorsLeft*"]


class Valgrind(unittest.TestCase):
    def check(self, result):
        self.assertEqual(result.returncode, 0, result.stdout)
        # A message of valgrind is a failure, unless it is about a leak of another library.
        said = {}
        for pid, line in re.findall(r"(?:==|--)(\d+)(?:==|--) ?(.*)", result.stdout):
            said[pid] = said.get(pid, "") + line + "\n"
        for complaints in said.values():
            for complaint in filter(None, re.split(r"\n\s*\n", complaints.strip())):
                self.assertIn("lost in loss record", complaint)
                self.assertNotRegex(complaint, r"rocemu::(provider|shim)|librocemu")

    def pair(self, *command, client=("localhost",)):
        for _ in range(10):
            port = str(free_port())
            side = [*VALGRIND, *command, "-p", port]
            result = rocemu_run(*PAIR, port, *side, "--", *side, *client)
            if NO_CLOCK not in result.stdout:
                break
        self.check(result)

    def cm_pair(self, server, client):
        port = str(free_port())
        self.check(rocemu_run(*CM_PAIR, port, *VALGRIND, *server, "-p", port, "--",
                              *VALGRIND, *client, "-p", port))

    def test_devices(self):
        self.check(rocemu_run(*WITH_LEAKS, "ibv_devinfo", "-v"))
        self.check(rocemu_run(*WITH_LEAKS, "ibv_devices"))

    def test_pingpongs(self):
        for kind in ("rc", "uc", "ud", "srq"):
            for size in ("64", "4096") if kind != "ud" else ("64",):
                with self.subTest(kind=kind, size=size):
                    options = ["-n", "50", "-g", "0", "-s", size]
                    self.pair(f"ibv_{kind}_pingpong", *options)
                    self.pair(f"ibv_{kind}_pingpong", *options, "-e")

    def test_timestamps_and_memory_that_is_registered_on_demand(self):
        for option in ("-t", "-o", "-N"):
            with self.subTest(option):
                self.pair("ibv_rc_pingpong", "-n", "20", "-g", "0", option)

    def test_perftest(self):
        for tool in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw", "ib_send_lat"):
            with self.subTest(tool):
                self.pair(tool, "-n", "20", "-x", "0", *([] if "atomic" in tool else ["-s", "100"]))

    def test_rdmacm(self):
        self.cm_pair(["rping", "-s", "-C", "5", "-a", "127.0.0.1"],
                     ["rping", "-c", "-C", "5", "-a", "127.0.0.1"])

    OUR_TESTS = ["--gtest_brief=1",
                 "--gtest_filter=-" + ":".join(
                     ABOUT_BAD_ADDRESSES + ABOUT_THE_MACHINE + [REMOVALS] + OF_TWO_PROCESSES)]

    def test_the_providers_tests(self):
        self.check(run(*WITH_LEAKS, BIN / "provider_tests", *self.OUR_TESTS))

    def test_the_man_pages_sentence_by_sentence(self):
        self.check(rocemu_run(*WITH_LEAKS, BIN / "man_page_tests", *self.OUR_TESTS))

    def test_the_man_pages_in_two_processes(self):
        self.check(rocemu_run(*WITH_LEAKS, BIN / "man_page_tests", "--gtest_brief=1",
                              "--gtest_filter=" + ":".join(OF_TWO_PROCESSES)))

    def test_the_removal_of_a_device(self):
        listed = run(BIN / "man_page_tests", "--gtest_list_tests", f"--gtest_filter={REMOVALS}")
        names = re.findall(r"^  (\w+)$", listed.stdout, re.MULTILINE)
        self.assertGreater(len(names), 5)
        for name in names:
            with self.subTest(name):
                self.check(rocemu_run(*VALGRIND, BIN / "man_page_tests", "--gtest_brief=1",
                                      f"--gtest_filter={REMOVALS[:-1]}{name}"))


if __name__ == "__main__":
    unittest.main()
