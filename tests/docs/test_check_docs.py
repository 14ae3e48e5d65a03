"""Tests that scripts/pages.py, which scripts/check_docs.py runs for all documents, finds errors and nothing else."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import pages  # noqa: E402

SOURCE = "struct Rule {\n  bool silent = false;\n};\nvoid Engine::step() {\n  run_first();\n}\n"


class Pages(unittest.TestCase):
    def wrong(self, **texts):
        """Returns the errors that the script finds in a tree with these pages; `design_x` stands for
        docs/design/x.md."""
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            root = pathlib.Path(scratch)
            files = {"emulator/engine/engine.cc": SOURCE, "emulator/engine/engine.h": "class Engine;\n",
                     "docs/other.md": "# Other page\n\n## Of `step()`, and more\n\n## Twice\n\n## Twice\n",
                     **{f"docs/{name.replace('_', '/')}.md": text for name, text in texts.items()}}
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return pages.wrong_pages(root)

    def test_links_lead_to_files_folders_and_headings(self):
        self.assertEqual(self.wrong(page="# A page\n[a](other.md) [b](other.md#of-step-and-more) [c](../emulator/engine) "
                                         "[d](#a-page) [e](https://example.com/x) [f](other.md#twice-1)\n"
                                         "```\n[g](no.md)\n```\n"), [])
        self.assertEqual(self.wrong(page="[a](no.md)\n"), ["docs/page.md: the link no.md leads nowhere"])
        self.assertEqual(self.wrong(page="[a](other.md#gone)\n"),
                         ["docs/page.md: the link other.md#gone leads to no heading"])
        self.assertEqual(self.wrong(page="[a](#gone)\n"), ["docs/page.md: the link #gone leads to no heading"])

    def test_files_in_backquotes_exist(self):
        self.assertEqual(self.wrong(page="`emulator/engine/engine.cc` `emulator/engine/` `emulator/engine/engine` `engine.cc` "
                                         "`scenarios/NAME.yaml` `verbs.h` `/sys/class`\n"), [])
        self.assertEqual(self.wrong(page="`emulator/engine/gone.cc`\n"), ["docs/page.md: there is no emulator/engine/gone.cc"])
        self.assertEqual(self.wrong(page="`emulator/gone/`\n"), ["docs/page.md: there is no emulator/gone/"])
        self.assertEqual(self.wrong(page="`gone.cc`\n"), ["docs/page.md: there is no file gone.cc"])

    def test_names_of_the_code_exist_on_pages_about_the_code(self):
        self.assertEqual(self.wrong(design_x="`Engine::step` `run_first()` `word` `IBV_ANY` `test_NAME` `a b_c`\n"), [])
        self.assertEqual(self.wrong(design_x="`Engine::run_last`\n"),
                         ["docs/design/x.md: no file of the code has the name Engine::run_last"])
        self.assertEqual(self.wrong(page="`of_another_project`\n"), [])

    def test_functions_are_in_the_file_beside_them(self):
        row = "| What is run? | `emulator/engine/engine.h` | `Engine::step`, `run_first` |\n"
        self.assertEqual(self.wrong(design_where="| question | file | function |\n|---|---|---|\n" + row), [])
        self.assertEqual(self.wrong(design_where=row.replace("engine.h` |", "engine.h`, `other.h` beside it |")), [])
        self.assertEqual(self.wrong(design_where=row.replace("run_first", "silent` and `wrong_pages"))[1:],
                         ["docs/design/where.md: wrong_pages is not in `emulator/engine/engine.h`"])

    def test_a_recipe_counts_the_files_of_a_fault_effect(self):
        with tempfile.TemporaryDirectory(prefix="rocemu-test-") as scratch:
            root = pathlib.Path(scratch)
            for name, text in {"emulator/engine/faults/rule.h": "struct Effects {\n  bool silent = false;\n};\n",
                               "emulator/engine/faults/request_faults.cc": "if (effects.silent) return;\n",
                               "emulator/scenario/effect_keys.cc": '{"silent", kRequest},\n',
                               "emulator/daemon/other.cc": '"silent"\n'}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            page = root / "docs" / "design" / "recipes.md"
            page.parent.mkdir(parents=True)
            page.write_text("| [a fault effect](#a) | 3 (`silent`) |\n\n# a\n")
            self.assertEqual(pages.wrong_pages(root), [])
            page.write_text("| [a fault effect](#a) | 4 (`silent`) |\n\n# a\n")
            self.assertIn("silent touches 3 files, and not 4", pages.wrong_pages(root)[0])

    def test_numbers_of_versions_and_vendor_errors_are_those_of_the_code(self):
        contents = {"emulator/abi/x.h": "inline constexpr uint32_t kVersion = 6;\n",
                    "emulator/engine/protocol/nak_codes.h": "enum class VendorError : uint32_t {\n  kNone = 0,\n  kBad = 1,\n};\n"}
        row = "| an ABI | `kVersion` in `emulator/abi/x.h` | 6 |\n"
        self.assertEqual(list(pages.wrong_versions(row, contents)), [])
        self.assertEqual(list(pages.wrong_versions(row.replace("6", "5"), contents)),
                         ["kVersion of emulator/abi/x.h is 6, and not 5"])
        self.assertEqual(list(pages.wrong_vendor_errors("| number |\n| 0 | nothing |\n| 1 | bad |\n", contents)), [])
        self.assertEqual(len(list(pages.wrong_vendor_errors("| 0 | nothing |\n", contents))), 1)

    def test_the_changelog_may_name_what_is_gone(self):
        self.assertEqual(self.wrong(page="`examples/gone.py`\n"), ["docs/page.md: there is no examples/gone.py"])
        self.assertEqual(pages.HISTORY, "CHANGELOG.md")


if __name__ == "__main__":
    unittest.main()
