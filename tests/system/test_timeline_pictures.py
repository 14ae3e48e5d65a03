"""Tests the picture of each scenario that comes with rocemu, by arithmetic on the SVG: arrowheads end at the
time at which frames arrive, and no text is crossed by an arrow or by another text. tests/timeline tests the
layout itself, and tests/pages tests the page in a browser."""
import json
import pathlib
import re
import unittest
import xml.etree.ElementTree

from library_programs import COMMANDS
from rocemu import ROCEMU, rocemu_run, run, temporary_directory

SVG = "{http://www.w3.org/2000/svg}"
CHARACTER, LINE, BASELINE = 7.8, 18, 14  # sizes of the font that the picture requests
KINDS = [word for kind in ("frame", "cm", "completion", "event", "fault") for word in ("--kind", kind)]
ROWS = "400"


def time_text(nanoseconds):
    for scale, unit, digits in ((1, "ns", 3), (1e3, "us", 3), (1e6, "ms", 3), (1e9, "s", 6)):
        if nanoseconds < scale * 1000 or unit == "s":
            return f"{nanoseconds / scale:.{digits}f}".rstrip("0").rstrip(".") + " " + unit
    raise AssertionError


def points(path):
    return [tuple(map(float, point.split())) for point in path.get("d")[1:].split("L")]


def crosses(start, end, box):
    """Returns whether a segment has a point inside a box (Liang and Barsky)."""
    (x, y), (to_x, to_y), (left, top, right, bottom) = start, end, box
    enters, leaves = 0, 1
    for way, room in ((x - to_x, x - left), (to_x - x, right - x), (y - to_y, y - top), (to_y - y, bottom - y)):
        if way == 0:
            if room <= 0:
                return False
        elif way < 0:
            enters = max(enters, room / way)
        else:
            leaves = min(leaves, room / way)
    return enters < leaves


class Picture:
    def __init__(self, text):
        root = xml.etree.ElementTree.fromstring(text)
        self.arrows = [arrow for arrow in root.findall(SVG + "g")]
        self.times, self.boxes = {}, []
        for text in root.findall(SVG + "text"):
            left, top = float(text.get("x")), float(text.get("y")) - BASELINE
            self.boxes.append((left, top, left + CHARACTER * len(text.text), top + LINE, text.text))
            if text.get("class") == "time":
                self.times.setdefault(text.text, []).append(top + LINE / 2)

    def shaft(self, arrow):
        return points(next(path for path in arrow.findall(SVG + "path") if path.get("class").startswith("shaft")))


class Pictures(unittest.TestCase):
    def check(self, name):
        with temporary_directory() as directory:
            recording = pathlib.Path(directory) / "recording"
            rocemu_run(*COMMANDS[name](), options=("--lockstep", "--scenario", name, "--record", recording))
            shown = [ROCEMU, "timeline", recording, *KINDS, "--rows", ROWS]
            picture = Picture(run(*shown, "--svg", "-", "--width", "100", check=True).stdout)
            frames = [one for one in json.loads(run(*shown, "--json", check=True).stdout)["happenings"]
                      if one["to"] not in (-1, one["lane"])]
        self.assertEqual(len(picture.arrows), len(frames))
        for arrow, frame in zip(picture.arrows, frames):
            line = picture.shaft(arrow)
            self.assertTrue(arrow.find(SVG + "title").text.startswith(frame["text"]), frame["text"])
            self.assertGreaterEqual(line[-1][1], line[0][1], frame["text"])
            if frame["lost"] or frame["flight"] == 0:
                self.assertEqual(line[-1][1], line[0][1], frame["text"])
            else:
                self.assertIn(line[-1][1], picture.times[time_text(frame["at"] + frame["flight"])], frame["text"])
        self.check_texts(picture)

    def check_texts(self, picture):
        segments = [segment for arrow in picture.arrows
                    for line in [picture.shaft(arrow)] for segment in zip(line, line[1:])]
        boxes = sorted(picture.boxes, key=lambda box: box[1])
        for index, (left, top, right, bottom, text) in enumerate(boxes):
            for segment in segments:
                if segment[0][1] < bottom and segment[1][1] > top:
                    self.assertFalse(crosses(*segment, (left, top, right, bottom)), text)
            for other in boxes[index + 1:]:
                if other[1] >= bottom:
                    break
                self.assertFalse(left < other[2] and other[0] < right, f"{text} and {other[4]}")


def picture_test(name):
    return lambda self: self.check(name)


for _name in COMMANDS:
    setattr(Pictures, "test_picture_of_" + re.sub("-", "_", _name), picture_test(_name))


if __name__ == "__main__":
    unittest.main()
