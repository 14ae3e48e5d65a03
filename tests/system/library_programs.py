"""For each scenario that comes with rocemu, the program with which the tests run it. These programs have no races of
their own, such as the races between rping's threads when it fails."""
import json
import pathlib
import subprocess

from rocemu import CM_PAIR, HERE, PAIR, ROCEMU, free_port, pingpong_pair


def pingpong(*arguments, program="ibv_rc_pingpong"):
    return pingpong_pair("-n", "50", *arguments, client_device="rocemu1", program=program)


def perftest(tool, *arguments):
    port = str(free_port())
    common = [tool, "-p", port, "-n", "50", "-F", *arguments]
    return [*PAIR, port, *common, "-d", "rocemu0", "--", *common, "-d", "rocemu1", "localhost"]


def rping(*arguments):
    """Returns the command for a server on rocemu0 and a client on rocemu1."""
    return [*CM_PAIR, "7174", "rping", "-s", "-a", "127.0.0.1", "-V", "-C", "10", *arguments, "--",
            "rping", "-c", "-a", "127.0.0.1", "-I", "127.0.0.2", "-v", "-V", "-C", "10", *arguments]


def ucmatose(times=1):
    client = "ucmatose -C 10 -s 127.0.0.1 -b 127.0.0.2"
    return [*CM_PAIR, "7471", "ucmatose", "-C", "10", "--", "sh", "-c", "; ".join([client] * times)]


def client_alone(*command):
    """Returns the command for a client whose server never gets a message. When the client has ended, the server is
    killed."""
    return ["env", "CM_PAIR_KILLS_SERVER=1", *command]


def watched(device, *command):
    """Returns a command that also runs ibv_asyncwatch, which starts before `command` and ends after the NIC has
    noticed that `command` ended."""
    return ["bash", "-c", """
        rocemu=$1; shift
        stdbuf -oL ibv_asyncwatch -d "$0" & watch=$!
        until "$rocemu" show | grep -q ibv_asyncwatch; do kill -0 $watch || exit 1; done
        "$@"; status=$?
        "$rocemu" show >/dev/null
        kill $watch; wait $watch; exit $status""", device, ROCEMU, *command]


def own(name):
    return ["/usr/bin/python3", str(HERE / "library_program.py"), name]


COMMANDS = {
    "cq-overrun": lambda: perftest("ib_write_bw"),
    "retry-exceeded": lambda: perftest("ib_write_bw"),
    "rnr-exceeded": lambda: own("rnr-exceeded"),
    "rnr-recovers": pingpong,
    "ghost-ack": lambda: pingpong("-c"),
    "lost-read-response": rping,
    "duplicate-atomic": lambda: own("duplicate-atomic"),
    "psn-wrap-loss": lambda: own("psn-wrap-loss"),
    "remote-access-error": lambda: perftest("ib_write_bw"),
    "remote-operational-error": pingpong,
    "local-protection-error": lambda: perftest("ib_write_bw"),
    "flush-after-error": lambda: own("flush-after-error"),
    "solicited-only-wakeups": lambda: own("solicited-only-wakeups"),
    "rtu-lost": ucmatose,
    "rep-lost": rping,
    "req-duplicated": ucmatose,
    "cm-reject": lambda: client_alone(*ucmatose()),
    "cm-timeout": lambda: client_alone(*ucmatose()),
    "stale-connection": lambda: ucmatose(times=2),
    "dreq-crossing": lambda: [*CM_PAIR, "7471", "rdma_server", "--",
                              "rdma_client", "-s", "127.0.0.1"],
    "port-flap": lambda: watched("rocemu0", *pingpong()),
    "device-removal": lambda: own("device-removal"),
    "srq-limit": lambda: own("srq-limit"),
    "verb-enomem": pingpong,
    "lost-send": pingpong,
    "lost-ack": pingpong,
    "duplicated": pingpong,
    "reordered": pingpong,
    "corrupted": pingpong,
    "slow-link": pingpong,
    "lossy-link": pingpong,
    "burst-loss": pingpong,
    "jitter": pingpong,
    "slow-receiver": pingpong,
    "post-send-enomem": pingpong,
    "killed-peer": lambda: perftest("ib_send_bw"),
}


def library():
    """Returns the names and explanations of the installed scenarios, as `rocemu` lists them."""
    listed = subprocess.run([ROCEMU, "scenarios", "--json"], stdout=subprocess.PIPE, check=True)
    return {one["name"]: one["explanation"] for one in json.loads(listed.stdout)}


def events(recording):
    """Returns the events of a recording as lines."""
    lines = (pathlib.Path(recording) / "events.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
