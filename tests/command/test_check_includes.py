"""Tests that scripts/check_includes.py finds every violation of the rules, and nothing else."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = SOURCE / "scripts" / "check_includes.py"


class CheckIncludes(unittest.TestCase):
    def check(self, files):
        """Returns the lines that the script prints about a tree of these files, without the summary."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            result = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True,
                                    check=False)
        lines = result.stdout.splitlines()[:-1]
        self.assertEqual(result.returncode, 1 if lines else 0, result)
        return lines

    def test_allowed(self):
        self.assertEqual(self.check({
            "wire/a.h": "#include <vector>\n#include \"wire/b.h\"\n", "wire/b.h": "",
            "emulator/abi/c.h": "", "emulator/engine/d.cc": '#include "wire/a.h"\n',
            "emulator/daemon/e.cc": '#include "emulator/engine/d.h"\n#include "boost/x.h"\n',
            "emulator/daemon/net/f.cc": '#include "emulator/daemon/run/g.h"\n',
            "emulator/daemon/run/g.h": '#include "emulator/engine/d.h"\n',
            "emulator/command/daemons/h.cc": '#include "emulator/daemon/daemon_main.h"\n',
            "emulator/daemon/daemon_main.h": "",
            "emulator/engine/d.h": '#include "emulator/abi/c.h"\n',
            "verbs_provider/p.cc": '#include "emulator/abi/c.h"\n#include "p.h"\n',
            "verbs_provider/p.h": "", "tests/t.cc": '#include "emulator/engine/d.h"\n',
        }), [])

    def test_forbidden(self):
        for including, included in (
                ("wire/a.cc", "emulator/abi/x.h"), ("emulator/abi/a.h", "wire/x.h"),
                ("emulator/engine/a.cc", "emulator/daemon/x.h"),
                ("emulator/engine/link/a.h", "emulator/engine/faults/x.h"),
                ("emulator/engine/transport/a.cc", "emulator/engine/fabric.h"),
                ("emulator/command/a.cc", "emulator/daemon/x.h"),
                ("emulator/command/daemons/a.cc", "emulator/daemon/daemon.h"),
                ("emulator/command/run/a.cc", "emulator/daemon/daemon_main.h"),
                ("emulator/daemon/base/a.h", "emulator/daemon/client/x.h"),
                ("emulator/daemon/run/a.cc", "emulator/daemon/net/x.h"),
                ("emulator/daemon/net/a.cc", "emulator/daemon/control/x.h"),
                ("emulator/daemon/kernel/a.cc", "emulator/daemon/daemon.h"),
                ("emulator/capture/a.cc", "emulator/daemon/x.h"),
                ("emulator/command/faults/a.cc", "emulator/command/run/x.h"),
                ("emulator/explore/points/a.h", "emulator/explore/findings/x.h"),
                ("emulator/timeline/reading/a.cc", "emulator/timeline/drawing/x.h"),
                ("emulator/os/programs/a.cc", "emulator/os/threads/x.h"),
                ("verbs_provider/shim/a.cc", "wire/x.h"), ("wire/a.cc", "tests/x.h")):
            for form in (f'#include "{included}"', f"  # include <{included}>"):
                lines = self.check({including: "\n" + form + "\n", included: ""})
                self.assertEqual(len(lines), 1)
                self.assertTrue(lines[0].startswith(f"{including}:2: "), lines)

    def test_no_room_of_the_provider_includes_a_higher_one(self):
        rooms = ("system", "hooks", "shim", "base", "context", "structs", "polling", "datapath", "objects")
        for i, low in enumerate(rooms):
            for high in rooms[i + 1:]:
                down = {f"verbs_provider/{high}/a.cc": f'#include "verbs_provider/{low}/x.h"\n',
                        f"verbs_provider/{low}/x.h": ""}
                self.assertEqual(self.check(down), [])
                up = {f"verbs_provider/{low}/a.cc": f'#include "verbs_provider/{high}/x.h"\n',
                      f"verbs_provider/{high}/x.h": ""}
                self.assertEqual(len(self.check(up)), 1, (low, high))

    def test_libraries_beside_the_provider_share_its_low_rooms_only(self):
        for library in ("turns", "call_sites"):
            for room, broken in (("system", 0), ("hooks", 0), ("base", 1), ("objects", 1)):
                lines = self.check({
                    f"verbs_provider/{library}/a.cc": f'#include "verbs_provider/{room}/x.h"\n',
                    f"verbs_provider/{room}/x.h": ""})
                self.assertEqual(len(lines), broken, (library, room))
        for room in ("shim", "objects"):
            lines = self.check({f"verbs_provider/{room}/a.cc": '#include "verbs_provider/turns/x.h"\n',
                                "verbs_provider/turns/x.h": ""})
            self.assertEqual(len(lines), 1, room)

    def test_an_include_planted_in_the_tree_is_found(self):
        """Adds forbidden includes to copies of files of this tree."""
        for folder, room, included in (
                ("emulator/daemon", "base", "emulator/daemon/run/worker.h"),
                ("emulator/daemon", "run", "emulator/daemon/daemon.h"),
                ("verbs_provider", "base", "verbs_provider/objects/qp_ex.h"),
                ("verbs_provider", "shim", "verbs_provider/turns/turn.h")):
            with tempfile.TemporaryDirectory() as root:
                shutil.copytree(SOURCE / folder, pathlib.Path(root, folder))
                file = min(pathlib.Path(root, folder, room).glob("*.cc"))  # the folder may have no space for one more
                file.write_text(f'#include "{included}"\n' + file.read_text())
                result = subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 1, result)
                self.assertEqual(len(result.stdout.splitlines()), 2, result)
                self.assertTrue(result.stdout.startswith(f"{folder}/{room}/{file.name}:1: "), result)

    def test_a_folder_of_more_than_thirty_files_is_too_large(self):
        files = {f"wire/f{i}.h": "" for i in range(30)}
        self.assertEqual(self.check(files), [])
        self.assertEqual(self.check({**files, "wire/cm/one_more.h": "", "wire/page.md": ""}), [])
        lines = self.check({**files, "wire/one_more.cc": ""})
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith("wire: 31 C++ files"), lines)

    def test_relative_names_are_no_way_around(self):
        lines = self.check({"wire/a.cc": '#include "../emulator/abi/x.h"\n',
                            "emulator/abi/x.h": ""})
        self.assertEqual(len(lines), 1)

    def test_a_folder_without_a_rule(self):
        lines = self.check({"emulator/novelty/a.cc": ""})
        self.assertIn("emulator/novelty has no rule", lines[0])


if __name__ == "__main__":
    unittest.main()
