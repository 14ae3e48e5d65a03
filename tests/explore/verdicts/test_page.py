"""Tests report.html in a browser: on a narrow screen, in dark mode, and its links."""
import re
import shutil
import subprocess
import unittest

from support import TIMEOUT, VICTIM, ExploreTest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# Shows the page in a frame of this width. The frame reports the page's width and color.
FRAME = """<!DOCTYPE html><meta name="color-scheme" content="{scheme}"><body>
<iframe src="report.html" style="border:0;width:{width}px;height:800px;color-scheme:{scheme}"
onload="const page = contentDocument; for (const one of page.querySelectorAll('details')) one.open = true;
document.title = page.documentElement.scrollWidth + ' ' +
contentWindow.getComputedStyle(page.body).backgroundColor"></iframe>"""


class Page(ExploreTest):
    def setUp(self):
        super().setUp()
        # The command is one long word.
        long = self.scratch / ("victim-" + "x" * 200)
        shutil.copy(VICTIM, long)
        self.explore("--only", "verbs:reg_mr", command=[str(long), "hangs"])
        self.folder = self.scratch / "rocemu-findings"
        self.page = (self.folder / "report.html").read_text()

    def seen(self, width, scheme):
        (self.folder / "frame.html").write_text(FRAME.format(width=width, scheme=scheme))
        dom = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
             f"--user-data-dir={self.scratch}/profile", "--dump-dom", f"file://{self.folder}/frame.html"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=TIMEOUT, check=True)
        [found] = re.findall(r"<title>(\d+) rgb\((\d+), ", dom.stdout)
        return int(found[0]), int(found[1])

    @unittest.skipIf(CHROMIUM is None, "there is no Chromium: apt-get install chromium")
    def test_nothing_is_wider_than_the_screen(self):
        for width in (390, 1280):
            self.assertLessEqual(self.seen(width, "light")[0], width)

    @unittest.skipIf(CHROMIUM is None, "there is no Chromium: apt-get install chromium")
    def test_it_is_light_or_dark(self):
        self.assertGreater(self.seen(390, "light")[1], 200)
        self.assertLess(self.seen(390, "dark")[1], 60)

    def test_links_lead_to_files(self):
        links = re.findall(r'href="([^"]*)"', self.page)
        for name in ("1/timeline.html", "1/events.jsonl", "1/scenario.yaml", "1/trace.pcap"):
            self.assertIn(name, links)
        for link in links:
            self.assertTrue((self.folder / link).exists(), link)


if __name__ == "__main__":
    unittest.main()
