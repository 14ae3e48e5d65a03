"""Tests that scripts/check_words.py finds each pattern of unclear English that CONTRIBUTING.md names, in texts and
nowhere else."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_words  # noqa: E402


class Patterns(unittest.TestCase):
    def found(self, **texts):
        """Returns (kind, pattern) of each place that the script finds in these texts; `page` stands for
        docs/page.md, `code` for emulator/options/code.cc."""
        names = {"page": "docs/page.md", "code": "emulator/options/code.cc", "engine": "emulator/engine/code.cc",
                 "yaml": "scenarios/x.yaml", "data": "docs/data/page.md"}
        files = {names[name]: text for name, text in texts.items()}
        return [(kind, pattern) for kind, pattern, *_ in check_words.places(files)]

    def test_pages_are_searched_without_code_and_links(self):
        self.assertEqual(self.found(page="A thread that nobody wakes.\n"), [("pages", "who")])
        self.assertEqual(self.found(page="`nobody` [x](nobody.md)\n```\nnobody\n```\n"), [])
        self.assertEqual(self.found(data="nobody\n"), [])

    def test_each_pattern_of_contributing_is_found(self):
        sentences = {"who": "who waits", "tell": "tells of each program", "is-to": "is to be a list",
                     "so-many": "keep only so many bytes", "home-verb": "the run goes on", "of-its-own": "a NIC of its own",
                     "british": "an optimised program"}
        self.assertEqual(set(sentences), set(check_words.PATTERNS))
        for pattern, sentence in sentences.items():
            self.assertEqual(self.found(page=sentence + "\n"), [("pages", pattern)], sentence)

    def test_british_spellings_are_found_in_any_form(self):
        for word in ("Behaviours", "cancelled", "signalling", "Initialises", "normalisation", "judgements"):
            self.assertEqual(self.found(page=word + "\n"), [("pages", "british")], word)
        for word in ("behavior", "canceled", "cancellation", "specialist", "finalist", "utilization", "judgment"):
            self.assertEqual(self.found(page=word + "\n"), [], word)

    def test_plain_sentences_have_no_pattern(self):
        self.assertEqual(self.found(page="The report lists what each thread waits for. It must be a non-empty list, which lasts as "
                                         "long as the run; it continues.\n"), [])

    def test_messages_are_string_literals_of_the_commands(self):
        self.assertEqual(self.found(code='fail("nobody listens");\n'), [("messages", "who")])
        self.assertEqual(self.found(engine='fail("nobody listens");\n'), [])
        self.assertEqual(self.found(code='return R"(\nso many\n)";\n'), [("messages", "so-many")])

    def test_comments_need_a_subject_and_a_verb(self):
        for comment in ("Of one that is over.", "True if it ends.", "What the NIC holds.", "Whose files these are.",
                        "For the answer."):
            self.assertEqual(self.found(engine=f"/// {comment}\nint f();\n"), [("comments", "fragment")], comment)
        for comment in ("Returns whether it ends.", "The files of the NIC.", "What follows is the rest of the file.",
                        "For a READ the responder needs a slot.", "Without a reader it fails."):
            self.assertEqual(self.found(engine=f"/// {comment}\nint f();\n"), [], comment)
        self.assertEqual(self.found(yaml="# Of each QP the third packet\n"), [("comments", "fragment")])

    def test_a_comment_of_several_lines_is_one(self):
        self.assertEqual(self.found(engine="// Returns the frames\n// of one that has ended.\n"), [])

    def test_more_than_the_limit_is_an_error(self):
        found = {"pages": {"who": 2}}
        self.assertEqual(list(check_words.too_many(found, {"pages": {"who": 2}})), [])
        self.assertIn("pages: 2 times the pattern 'who', 1 are allowed",
                      next(check_words.too_many(found, {"pages": {"who": 1}})))

    def test_a_long_page_is_an_error_unless_it_is_a_reference(self):
        words = "word " * (check_words.MOST_WORDS + 1)
        self.assertEqual(len(list(check_words.long_pages({"docs/page.md": words}))), 1)
        self.assertEqual(list(check_words.long_pages({"docs/statuses.md": words, "docs/data/page.md": words,
                                                      "docs/page.md": f"```\n{words}\n```\n"})), [])


if __name__ == "__main__":
    unittest.main()
