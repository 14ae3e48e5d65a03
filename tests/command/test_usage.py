"""Tests help texts, and the messages about wrong command lines."""
import re
import unittest

from support import CommandTest

SUBCOMMANDS = ["run", "explore", "up", "down", "show", "set", "wait", "replay", "check", "scenarios", "inject",
               "pause", "step", "resume", "diff", "timeline", "explain", "doctor"]


class Help(CommandTest):
    def test_version(self):
        result = self.rocemu("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"\Arocemu \d+\.\d+\.\d+\n\Z")

    def test_general_help_names_every_command_and_gives_examples(self):
        for arguments in (["--help"], ["-h"], ["help"]):
            result = self.rocemu(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            for name in SUBCOMMANDS:
                self.assertIn(f"\n  {name} ", result.stdout)
            self.assertIn("rocemu run -- ibv_devices", result.stdout)

    def test_every_command_explains_itself_in_two_ways(self):
        for name in SUBCOMMANDS:
            result = self.rocemu("help", name)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout.startswith(f"usage: rocemu {name}"), result.stdout)
            self.assertEqual(self.rocemu(name, "--help").stdout, result.stdout)
            for line in result.stdout.splitlines():
                # examples must be copied as they are
                if not line.startswith("  rocemu ") and name != "explore":
                    self.assertLessEqual(len(line), 80, f"{name}: {line}")

    def test_all_options_are_listed_on_demand(self):
        for name in SUBCOMMANDS:
            short, everything = (self.rocemu(name, option) for option in ("--help", "--help-all"))
            self.assertEqual((everything.returncode, everything.stderr), (0, ""))
            options = [set(re.findall(r"^  (--[a-z-]+)", result.stdout, re.M))
                       for result in (short, everything)]
            self.assertLessEqual(options[0], options[1], name)
            self.assertEqual("--help-all" in short.stdout, options[0] != options[1], name)

    def test_help_behind_the_separator_is_the_command_s_own(self):
        result = self.rocemu("run", "--", "sh", "-c", 'echo "$1"', "x", "--help")
        self.assertEqual((result.returncode, result.stdout), (0, "--help\n"))


class WrongUsage(CommandTest):
    def check(self, arguments, *parts):
        with self.subTest(arguments=arguments):
            self.assert_one_line(self.rocemu(*arguments), 2, *parts)

    def test_of_rocemu(self):
        self.check([], "rocemu --help")
        self.check(["rnu", "--", "true"], "did you mean 'rocemu run'")
        self.check(["ibv_devices"], "rocemu run -- PROGRAM")
        self.check(["--devices", "3"], "--devices", "rocemu run")
        self.check(["help", "nothing"], "no command 'nothing'")
        self.check(["help", "run", "up"], "one command")

    def test_of_run_without_a_command(self):
        self.check(["run"], "rocemu run -- ibv_devices")
        self.check(["run", "--"], "no command")
        self.check(["run", "--", ""], "no command")
        self.check(["run", "ls", "-l"], "rocemu run -- ls")
        self.check(["run", "--timeout", "5s", "./test"], "rocemu run --timeout 5s -- ./test")
        self.check(["run", "first", "--", "true"], "unexpected argument 'first'")

    def test_of_options(self):
        self.check(["run", "--devcies", "3", "--", "true"], "did you mean '--devices'")
        self.check(["run", "--nonsense", "--", "true"], "--nonsense", "rocemu run --help")
        self.check(["run", "--capture", "--", "true"], "--capture", "needs a value")
        self.check(["run", "--private=1", "--", "true"], "--private", "takes no value")
        self.check(["run", "--capture=", "--", "true"], "--capture", "has no value after '='")
        self.check(["run", "--devices", "2", "--devices", "2", "--", "true"], "given twice")
        self.check(["run", "--dev", "2", "--", "true"], "--dev")  # no abbreviations
        for command in ("run", "up", "explore"):
            self.check([command, "--threads", "--", "true"], "'--threads' no longer exists",
                       "leave it out")
            for clock in (["--clock", "virtual"], ["--clock=virtual"], ["--clock", "real"]):
                self.check([command, *clock, "--", "true"], "'--clock' no longer exists",
                           "use --lockstep for virtual time; without it the clock is real")
        for before, now in (("--tell-exits", "--report-failures"), ("--without-trace", "--no-trace"),
                            ("--sleep-between-turns", "--no-spin")):
            self.check(["run", before, "--", "true"], f"'{before}' no longer exists", now)
        self.check(["show", "--devices", "3"], "'--devices' is one of rocemu run, rocemu up")
        self.check(["explore", "--record", "d", "--", "true"], "'--record' is one of rocemu run")
        self.check(["up", "--private"], "--private")
        self.check(["up", "now"], "up")
        self.check(["down", "now"], "down")
        self.check(["show", "--dir"], "--dir")

    def test_of_set(self):
        self.check(["set"], "no device", "rocemu set rocemu0 port down")
        self.check(["set", "rocemu0"], "rocemu0 must be followed by", "rocemu set rocemu0 port down")
        self.check(["set", "rocemu0", "prot", "up"], "no 'prot'", "rocemu set rocemu0 port down")
        self.check(["set", "rocemu0", "port"], "up or down", "rocemu set rocemu0 port down")
        self.check(["set", "rocemu0", "port", "left"], "not 'left'")
        self.check(["set", "rocemu0", "port", "up", "now"], "'now'")
        self.check(["set", "rocemu0", "port", "up", "--dri", "x"], "did you mean '--dir'")

    def test_of_numbers_out_of_range(self):
        recording = self.scratch  # the options are checked first
        true = ("--", "true")
        for command, option, least, most, behind in (
                ("run", "--check-determinism", 2, 1000, ("--lockstep", *true)),
                ("run", "--processor", 0, 2147483647, ("--lockstep", *true)),
                ("run", "--capture-last", 1, 1000000, ("--capture", "x", *true)),
                ("run", "--snap-length", 54, 65535, ("--capture", "x", *true)),
                ("run", "--ack-coalescing", 1, 16, true),
                ("explore", "--random", 1, 100000, true),
                ("explore", "--schedules", 1, 100000, true),
                ("explore", "--adversarial", 1, 10000, true),
                ("explore", "--depth", 1, 2, true),
                ("explore", "--repeat", 1, 1000, true),
                ("explore", "--jobs", 1, 1000, true),
                ("explore", "--slow", 1, 1000000, true),
                ("timeline", "--width", 20, 10000, (recording,)),
                ("timeline", "--rows", 1, 1000000000, (recording,)),
                ("timeline", "--around-error", 0, 1000000000, (recording,))):
            wrong = ["-1", str(most + 1), "99999999999999999999", "x", "2x", "nan", *([str(least - 1)] if least else [])]
            for value in wrong:
                with self.subTest(command, option=option, value=value):
                    result = self.rocemu(command, f"{option}={value}", *behind)
                    self.assert_one_line(result, 2, f"{command}: {option} '{value}' is not a number ",
                                         f"from {least} to {most}")

    def test_of_times(self):
        for command, option in (("run", "--timeout"), ("explore", "--budget"), ("explore", "--run-timeout")):
            for value in ("0", "-1", "nan", "soon", "1e30"):
                self.check([command, f"{option}={value}", "--", "true"],
                           f"rocemu: {command}: {option} '{value}' is not a time")
        self.check(["wait", "--listening", "1", "--timeout", "0"], "rocemu: wait: --timeout '0' is not a time")
        for option in ("--from", "--to"):
            for value in ("-1s", "nans", "1e10s", "3"):
                self.check(["timeline", f"{option}={value}", self.scratch],
                           f"timeline: {option} '{value}' is not a time")

    def test_of_queue_pair_numbers(self):
        # A number that wraps to a QPN in 64 bits, one of more than 24 bits (IBTA vol 1, 9.2.4), and no number
        for value in ("-1", "-18446744073709551599", "0x1000000", "16777216", "", "0x", "x", " 17"):
            self.check(["timeline", f"--qp={value}" if value else "--qp=", self.scratch], "--qp")

    def test_of_devices(self):
        for text in ("0", "251", "-1", "two", "", "2x", "99999999999999999999"):
            self.check(["run", f"--devices={text}" if text else "--devices=", "--", "true"],
                       "--devices")
        self.check(["run", "--devices", "2", "--device", "a", "--", "true"], "not both")
        for text in ("=10.0.0.1", "a b", "a/b", ".a", "x" * 64):
            self.check(["run", "--device", text, "--", "true"], "name")
        for text in ("a=", "a=10.0.0", "a=10.0.0.1,", "a=10.0.0.256", "a=::1::", "a=host,"):
            self.check(["up", "--device", text], "is not an IPv4 or IPv6 address")
        # No NIC has an address that names several or none: RFC 4291 2.5.2 and 2.7, RFC 919, RFC 1122 3.2.1.3.
        for address, kind in (("224.0.0.1", "a multicast"), ("239.255.255.255", "a multicast"),
                              ("ff02::1", "a multicast"), ("0.0.0.0", "the unspecified"), ("::", "the unspecified"),
                              ("255.255.255.255", "the broadcast")):
            for command in (["run", "--device", f"x={address}", "--", "true"],
                            ["up", "--device", f"x=10.0.0.1,{address}"]):
                self.check(command, f"--device '{command[2]}': {address} is {kind} address, which no NIC has")
            file = self.scratch / "topology.yaml"
            file.write_text("nodes: [{node: 0, switches: [{rails: [{device: x, addresses: ['" + address + "']}]}]}]\n")
            self.check(["run", "--topology", str(file), "--", "true"], f"{address} is {kind} address")
        for address in ("127.0.0.1", "::1", "223.255.255.255", "240.0.0.1", "fe80::1"):
            result = self.rocemu("run", "--device", f"x={address}", "--", "true")
            self.assertEqual((result.returncode, result.stderr), (0, ""), address)
        # The word could be the name of an interface, and only the daemon knows the interfaces.
        self.assert_one_line(self.rocemu("run", "--device", "a=host", "--", "true"), 1,
                             "device a: there is no network interface 'host'")
        for topology in ("no-such", "/no/such/file"):
            self.check(["run", "--topology", topology, "--", "true"],
                       f"'{topology}' is not pci, flat, a readable file or an installed topology", "8-rails")
        self.check(["run", "--topology", "8-rails", "--devices", "2", "--", "true"],
                   "leave out --devices")
        self.check(["run", "--device", "a", "--device", "a", "--", "true"], "'a'")
        self.check(["run", "--device", "a=" + ",".join(f"10.0.0.{i}" for i in range(17)), "--",
                    "true"], "at most 16")

    def test_of_the_other_options_of_the_fabric(self):
        self.check(["run", "--seed", "-1", "--", "true"], "--seed")
        self.check(["run", "--seed", "18446744073709551616", "--", "true"], "--seed")
        self.check(["run", "--log-level", "loud", "--", "true"], "trace, debug, info, warn")
        self.check(["run", "--capture=", "--", "true"], "--capture")

    def test_two_devices_of_one_address(self):
        self.check(["run", "--device", "a=10.0.0.1", "--device", "b=10.0.0.1", "--", "true"],
                   "10.0.0.1")


if __name__ == "__main__":
    unittest.main()
