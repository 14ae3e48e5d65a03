"""scripts/check_includes.py finds what breaks the rules and nothing else."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_includes.py"


class CheckIncludes(unittest.TestCase):
    def check(self, files):
        """The lines it prints about a tree of these files, without the summary."""
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
                ("emulator/daemon/base/a.h", "emulator/daemon/client/x.h"),
                ("emulator/daemon/run/a.cc", "emulator/daemon/net/x.h"),
                ("emulator/daemon/net/a.cc", "emulator/daemon/control/x.h"),
                ("emulator/daemon/kernel/a.cc", "emulator/daemon/daemon.h"),
                ("emulator/capture/a.cc", "emulator/daemon/x.h"),
                ("verbs_provider/shim/a.cc", "wire/x.h"), ("wire/a.cc", "tests/x.h")):
            for form in (f'#include "{included}"', f"  # include <{included}>"):
                lines = self.check({including: "\n" + form + "\n", included: ""})
                self.assertEqual(len(lines), 1)
                self.assertTrue(lines[0].startswith(f"{including}:2: "), lines)

    def test_relative_names_are_no_way_around(self):
        lines = self.check({"wire/a.cc": '#include "../emulator/abi/x.h"\n',
                            "emulator/abi/x.h": ""})
        self.assertEqual(len(lines), 1)

    def test_a_folder_without_a_rule(self):
        lines = self.check({"emulator/novelty/a.cc": ""})
        self.assertIn("emulator/novelty has no rule", lines[0])


if __name__ == "__main__":
    unittest.main()
