#!/usr/bin/python3
"""Runs a server and its client to the end, side by side: pair.py [--outputs SERVER_FILE
CLIENT_FILE] PORT SERVER... -- CLIENT...

The client starts once a process listens on TCP port PORT. The exit status is 0 if both had 0;
otherwise the first other one. Meant to run under `rocemu run`.
"""
import subprocess
import sys
import time


def listening(port):
    """Returns whether a process listens on the port. Does not connect, since the server would
    take that connection for its client's."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == "0A":
                    return True
    return False


def main():
    arguments = sys.argv[1:]
    outputs = [None, None]  # ours
    if arguments[0] == "--outputs":
        outputs = [open(name, "wb") for name in arguments[1:3]]
        arguments = arguments[3:]
    port = int(arguments[0])
    split = arguments.index("--")
    server = subprocess.Popen(arguments[1:split], stdout=outputs[0], stderr=outputs[0])
    deadline = time.monotonic() + 60
    while not listening(port):
        if server.poll() is not None:
            sys.exit(f"pair.py: the server ended before it listened, status {server.returncode}")
        if time.monotonic() > deadline:
            server.kill()
            sys.exit(f"pair.py: the server does not listen on port {port}")
        time.sleep(0.002)
    client = subprocess.Popen(arguments[split + 1:], stdout=outputs[1], stderr=outputs[1])
    statuses = [client.wait(), server.wait()]
    sys.exit(next((abs(status) for status in statuses if status), 0))


if __name__ == "__main__":
    main()
