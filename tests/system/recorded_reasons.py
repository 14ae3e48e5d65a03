"""The reasons why frames were sent again, and what rules did to frames, as a timeline must show them. They are
derived from the engine's own record (`rocemu timeline DIR --events`), not from a ladder."""
import collections
import json
import re

from rocemu import ROCEMU, run

# A timeline also explains a NAK or a REJ. These texts follow the reasons of a frame, and are not compared.
SAYS_BY_ITSELF = re.compile(r"not ready for this message: the requester must wait and send it again|"
                            r"the responder expects psn [+-]?\d+( \(\d+\))?: the requester must go back|"
                            r"the responder refuses the request for good: the requester's QP fails|"
                            r"rejected: .* \(\d+\)")
QUERIES = re.compile(r"READ Request|CmpSwap|FetchAdd|ATOMIC WRITE|FLUSH|CompareSwap", re.I)
# Values of IBTA vol 1, table 45, in ns.
RNR_TIMERS = {10_000, 20_000, 30_000, 40_000, 60_000, 80_000, 120_000, 160_000, 240_000, 320_000,
              480_000, 640_000, 960_000, 1_280_000, 1_920_000, 2_560_000, 3_840_000, 5_120_000,
              7_680_000, 10_240_000, 15_360_000, 20_480_000, 30_720_000, 40_960_000, 61_440_000,
              81_920_000, 122_880_000, 163_840_000, 245_760_000, 327_680_000, 491_520_000,
              655_360_000}


def events_of(recording):
    return [json.loads(line)
            for line in run(ROCEMU, "timeline", recording, "--events", check=True).stdout.splitlines()]


def duration(ns):
    """Formats 655360000 ns as "655.36 ms": three digits after the point, or six for seconds, without zeros at the
    end."""
    for limit, scale, unit in ((10**3, 1, "ns"), (10**6, 10**3, "us"), (10**9, 10**6, "ms")):
        if ns < limit:
            return f"{ns / scale:.3f}".rstrip("0").rstrip(".") + " " + unit
    return f"{ns / 10**9:.6f}".rstrip("0").rstrip(".") + " s"


def resent(frame):
    if not frame.get("begins"):
        return "retransmission"
    waited = duration(frame.get("waited_ns", 0))
    awaited = "response" if QUERIES.search(frame.get("opcode", "")) else "ACK"
    return {
        "ack_timeout": f"retransmission: no {awaited} within {waited}",
        "sequence_nak": "retransmission after NAK PSN sequence error",
        "rnr_nak": f"retransmission after RNR NAK, timer {waited}",
        "implied_nak": "retransmission after an implied NAK: a later response arrived, but this request's did not",
        "no_memory": "retransmission: there was no memory for the response",
        "no_reply": f"retransmission: no answer within {waited}",
        "duplicate": "answers a duplicate",
    }[frame["resent"]]


def changes(fault, frame):
    words = [("rewritten", "rewritten"), ("corrupted", "corrupted"), ("dropped", "dropped"),
             ("rejected", "rejected on behalf of the peer")]
    if not frame.get("lost"):
        words.append(("delayed", "delayed by " + duration(fault.get("delay_ns", 0))))
        if not frame.get("copy"):
            words.append(("duplicated", "duplicated"))
        words.append(("reordered", "reordered"))
    done = [text for key, text in words if fault.get(key)]
    rule = fault["rule"]
    return f"{' and '.join(done)} by rule '{rule}'" if done else f"rule '{rule}' acts here"


class Reasons:
    def __init__(self, events):
        self.faults = collections.defaultdict(list)
        for event in events:
            if event["what"] == "fault" and "frame" in event:
                self.faults[event["frame"]].append(event)
        self.numbers = collections.defaultdict(list)
        self.of_frames = [(frame, self.of(frame)) for frame in events
                          if frame["what"] in ("frame", "cm_message") and self.is_shown(frame)]

    def is_shown(self, frame):
        return "malformed" not in frame or self.faults[frame["number"]]

    def of(self, frame):
        texts = [f"forged by rule '{fault['rule']}': no device sent it"
                 for fault in self.faults[frame.get("made_up_with", 0)]
                 if fault.get("injected") or fault.get("rejected")]
        of_it = self.faults[frame["number"]]
        if frame.get("copy"):
            texts += [f"copy made by rule '{fault['rule']}'" for fault in of_it if fault.get("duplicated")]
        for fault in of_it:
            done = {key for key in ("rewritten", "corrupted", "dropped", "rejected", "delayed",
                                    "duplicated", "reordered", "injected") if fault.get(key)}
            if not frame.get("copy") or done != {"duplicated"}:
                texts.append(changes(fault, frame))
        if "link_delay_ns" in frame:
            texts.append(f"delayed by {duration(frame['link_delay_ns'])} on the link")
        if "resent" in frame:
            texts.append(resent(frame))
        overtakers = self.overtakers(frame)
        if overtakers:
            texts.append(f"overtaken by {overtakers} frame{'s' if overtakers > 1 else ''}")
        return texts

    def overtakers(self, frame):
        if frame.get("copy") or "malformed" in frame:
            return 0
        numbers = self.numbers[frame["from"], frame["to"], frame.get("qp"), frame.get("src_qp")]
        count = len([number for number in numbers if number > frame["number"]])
        if "made_up_with" not in frame:
            numbers.append(frame["number"])
        return count


def check_reasons(test, recording):
    """Checks that each frame of the timeline has exactly the reasons that the record has."""
    events = events_of(recording)
    expected = Reasons(events).of_frames
    happenings = json.loads(run(ROCEMU, "timeline", recording, "--json", check=True).stdout)["happenings"]
    shown = [one for one in happenings if one["kind"] in ("frame", "cm")]
    test.assertEqual(len(shown), len(expected))
    for one, (frame, texts) in zip(shown, expected):
        reason, prefix = one.get("reason", ""), "; ".join(texts)
        test.assertTrue(reason.startswith(prefix), (one["text"], reason, prefix, frame))
        rest = reason[len(prefix):].removeprefix("; ")
        if rest:
            test.assertRegex(rest, rf"^({SAYS_BY_ITSELF.pattern})$", (one["text"], frame))
    drawn = {frame["number"] for frame, _ in expected}
    test.assertEqual(
        sorted(one["text"] for one in happenings
               if one["kind"] == "fault" and one["text"] != "process killed"),
        sorted(f"rule '{event['rule']}'" for event in events
               if event["what"] == "fault" and event.get("frame") not in drawn))
    check_timers(test, events)


def check_timers(test, events):
    """Checks that the timers in the record follow the specification."""
    timeouts, peers, naks = {}, {}, {}
    for event in events:
        if event.get("verb") == "modify_qp" and "error" not in event:
            qp = event.get("qp", event.get("object"))
            if "timeout" in event:
                timeouts[qp] = event["timeout"]
            if "dest_qp" in event:
                peers[event["dest_qp"]] = qp
        if event["what"] != "frame" or "malformed" in event:
            continue
        if "RNR" in event.get("aeth", ""):
            naks[event["qp"]] = event
        if not event.get("begins"):
            continue
        sender = peers.get(event["qp"])
        if event["resent"] == "ack_timeout":  # IBTA vol 1, 9.7.6.1.3
            test.assertEqual(event["waited_ns"], 4096 << timeouts[sender], event)
        if event["resent"] == "rnr_nak":
            test.assertIn(event["waited_ns"], RNR_TIMERS)
            test.assertEqual(event["psn"], naks[sender]["psn"])
            test.assertGreaterEqual(event["t"] - naks[sender]["t"], event["waited_ns"])
