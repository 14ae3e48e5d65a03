"""Tests that the JSON schema of scenario files and the parser accept the same files."""
import json
import os
import pathlib
import re
import unittest

from support import CommandTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = pathlib.Path(os.environ["ROCEMU_BUILD"]) / "share" / "rocemu" / "scenario.schema.json"

RIGHT = [
    "{on: frame, opcode: [send, RC_ACKNOWLEDGE], nth: 3-, do: drop}",
    "{on: frame, opcode: rc send only, psn: [1, 4-6, 0x10-], do: [drop, {port: {down: 1ms}}]}",
    "{on: frame, do: {corrupt: {bits: [1, 2]}, duplicate: 2}}",
    "{on: frame, do: {rewrite: {psn: +1, syndrome: ACK, solicited: true}}}",
    "{on: frame, do: {inject: [{to: sender, opcode: ACK, payload: 4}]}}",
    "{on: frame, probability: 0.5%, burst: 4, after: 2s, for: 1.5 min, do: drop}",
    "{on: link, between: [a, b], do: {latency: 10us, bandwidth: 1.5 Gbit/s, loss: 0.1, jitter: 1us}}",
    "{on: link, do: {bandwidth: 10Gbps}}",
    "{on: cm, mad: [REQ, RTU], do: {reject: {reason: CONSUMER, private_data: x}}}",
    "{on: cm, mad: REQ, do: {reject: 28}}",
    "{on: work_request, opcode: RDMA_WRITE, process: [a, 'b#2'], do: {status: IBV_WC_LOC_LEN_ERR, vendor_err: 0x1f}}",
    "{on: request, do: {nak: remote_access_error}}",
    "{on: request, do: rnr}",
    "{on: completion, queue: recv, status: [SUCCESS], wr_id: 7, do: {hold: 2}}",
    "{on: event, event: PORT_ERR, do: {event: PORT_ACTIVE}}",
    "{on: cm_event, event: ESTABLISHED, do: {event: UNREACHABLE, status: -ETIMEDOUT}}",
    "{on: cm_event, do: {status: -110}}",
    "{on: verb, verb: [reg_mr, ibv_post_send, rdma_connect], do: {errno: ENOMEM}}",
    "{on: verb, verb: reg_mr, do: {errno: 12}}",
    "{on: now, device: rocemu0, do: {gid: {index: 2, address: 10.1.2.3}}}",
    "{on: completion, nth: 2, do: [log, pause, kill, {raise: QP_FATAL}]}",
]
WRONG = [
    "{on: frames, do: drop}",
    "{on: frame, opcodes: SEND, do: drop}",
    "{on: frame, opcode: SENT, do: drop}",
    "{on: frame, do: dorp}",
    "{on: frame}",
    "{opcode: SEND, do: drop}",
    "{on: frame, verb: reg_mr, do: drop}",
    "{on: frame, nth: 0, do: drop}",
    "{on: frame, nth: 3..7, do: drop}",
    "{on: frame, do: {delay: 3}}",
    "{on: frame, do: {duplicate: 1001}}",
    "{on: frame, do: {rewrite: {psm: 1}}}",
    "{on: frame, probability: 110, do: drop}",
    "{on: verb, verb: reg_mrs, do: {errno: ENOMEM}}",
    "{on: verb, verb: reg_mr, do: {errno: ENONE}}",
    "{on: completion, do: {status: LOC_LEN}}",
    "{on: link, do: {bandwidth: 1Gb}}",
    "{on: now, nth: 1, do: {raise: PORT_ERR}}",
    "{on: request, do: {nak: 32}}",
    "{on: now, do: {gid: {index: 2}}}",
]


class Schema(CommandTest):
    @classmethod
    def setUpClass(cls):
        try:
            import jsonschema
            import yaml
        except ImportError as error:
            raise unittest.SkipTest(f"{error}: apt-get install python3-jsonschema python3-yaml") from error

        class Loader(yaml.SafeLoader):
            """Loads YAML 1.2, as editors do: `on` is a text and not a boolean."""

        Loader.yaml_implicit_resolvers = {
            first: [(tag, expression) for tag, expression in resolvers if not tag.endswith(":bool")]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
        Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))
        cls.load = staticmethod(lambda text: yaml.load(text, Loader))
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        cls.validator = jsonschema.Draft7Validator(schema)

    def valid(self, text):
        return [error.message for error in self.validator.iter_errors(self.load(text))]

    def parsed(self, text):
        file = self.scratch / "scenario.yaml"
        file.write_text(text)
        result = self.rocemu("check", file)
        return result.returncode == 0, result.stderr

    def test_the_build_makes_the_file_that_is_installed(self):
        self.assertEqual(self.rocemu("check", "--schema").stdout, SCHEMA.read_text())

    def test_whole_files_are_valid(self):
        texts = {path.name: path.read_text() for path in sorted((ROOT / "scenarios").glob("*.yaml"))}
        for page in (ROOT / "docs").glob("scenario*.md"):
            for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```$", page.read_text(),
                                                      re.M | re.S)):
                texts[f"{page.name} {number}"] = block
        self.assertGreater(len(texts), 36)
        for name, text in texts.items():
            with self.subTest(name):
                self.assertEqual(self.valid(text), [])
                self.assertEqual(self.parsed(text), (True, ""))

    def test_what_is_right_is_right_for_both(self):
        for rule in RIGHT:
            with self.subTest(rule):
                text = f"rules:\n- {rule}\n"
                self.assertEqual(self.valid(text), [])
                right, said = self.parsed(text)
                self.assertTrue(right, said)

    def test_what_is_wrong_is_wrong_for_both(self):
        for rule in WRONG:
            with self.subTest(rule):
                text = f"rules:\n- {rule}\n"
                self.assertNotEqual(self.valid(text), [])
                self.assertFalse(self.parsed(text)[0])

    def test_keys_of_a_file(self):
        for text in ("rule: []\n", "rules: 3\n", "rules: []\nnames: x\n", "name: x\n"):
            with self.subTest(text):
                self.assertNotEqual(self.valid(text), [])
                self.assertFalse(self.parsed(text)[0])


if __name__ == "__main__":
    unittest.main()
