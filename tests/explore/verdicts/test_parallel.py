"""Tests that shards that GNU parallel runs on several hosts, as docs/explore-shards.md describes, are merged
to the report of one machine."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from support import ROCEMU, TIMEOUT, VICTIM, ExploreTest

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "explore-shards.md"
# Stands in for ssh: runs the command on this machine, and records the host's name. Like sshd, it sets SHELL:
# without SHELL, GNU parallel runs nothing on the other host and reports success.
SSH = """#!/bin/sh
export SHELL=/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
echo "$1" >> "$ROCEMU_TEST_HOSTS"
shift
[ "$1" = -- ] && shift
exec sh -c "$*"
"""
SEEDED = ["--only", "verbs", "--random", "6", "--schedules", "4", "--seed", "7", "--depth", "2"]


class TheSameReport(ExploreTest):
    def setUp(self):
        super().setUp()
        shutil.copy(VICTIM, self.scratch / "hello")
        (self.scratch / "rocemu").symlink_to(ROCEMU)

    def shell(self, command, **variables):
        done = subprocess.run(command, shell=True, cwd=self.scratch, timeout=TIMEOUT, check=False,
                              env={**self.environment, "PATH": f"{self.scratch}:{os.environ['PATH']}",
                                   **variables}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done

    def json_of(self, folder):
        report = json.loads((self.scratch / folder / "report.json").read_text())
        return json.dumps(report, indent=1).replace(f"{folder}/", "FOLDER/")

    def whole(self, *options, jobs):
        code, out, err = self.explore(*options, "--output", "whole", "--force", "--jobs", jobs,
                                      "--fail-on", "none", command=["./hello"])
        self.assertEqual(code, 0, out + err)
        return self.json_of("whole")

    @unittest.skipUnless(shutil.which("parallel"), "GNU parallel is not installed")
    def test_of_shards_on_hosts(self):
        """Runs the commands of the page. All hosts are this machine."""
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
        [block] = [text for _, text in blocks if text.startswith("parallel ")]
        shards, merge = block.splitlines()
        ssh, hosts = self.scratch / "ssh", self.scratch / "hosts"
        ssh.write_text(SSH)
        ssh.chmod(0o755)
        done = self.shell(shards, PARALLEL=f"--will-cite --ssh {ssh}",
                          ROCEMU_TEST_HOSTS=str(hosts))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(set(hosts.read_text().split()), {"host1", "host2"})
        done = self.shell(merge)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        self.assertEqual(self.json_of("all"), self.whole(jobs="2"))

    @unittest.skipUnless(shutil.which("parallel"), "GNU parallel is not installed")
    def test_of_shards_on_this_host(self):
        done = self.shell("parallel --will-cite --sshlogin : --jobs 2 rocemu explore --fail-on none "
                          "--only verbs --shard {}/3 --output part{} -- ./hello ::: 1 2 3 && "
                          "rocemu explore merge --fail-on none --output all part1 part2 part3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.json_of("all"), self.whole("--only", "verbs", jobs="1"))

    def test_for_any_jobs_and_shards_of_one_seed(self):
        whole = self.whole(*SEEDED, jobs="1")
        self.assertEqual(self.whole(*SEEDED, jobs="3"), whole)
        for shards, jobs in ((2, 2), (5, 1)):
            folders = [f"of{shards}-{part + 1}" for part in range(shards)]
            for part, folder in enumerate(folders):
                code, out, err = self.explore(*SEEDED, "--shard", f"{part + 1}/{shards}", "--jobs",
                                              str(jobs), "--output", folder, "--fail-on", "none",
                                              command=["./hello"])
                self.assertEqual(code, 0, out + err)
            done = self.shell(f"rocemu explore merge --fail-on none --output merged{shards} "
                              f"{' '.join(folders)}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(self.json_of(f"merged{shards}"), whole)


if __name__ == "__main__":
    unittest.main()
