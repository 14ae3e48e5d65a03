#!/usr/bin/python3
"""Runs a server and its client to the end, side by side: pair.py PORT SERVER... -- CLIENT...

The client starts once something listens on TCP port PORT. Exit status 0 if both had 0; otherwise
the first other one. Meant to run under `rocemu run`.
"""
import subprocess
import sys
import time


def listening(port):
    """Looks instead of connecting, since the server takes the first connection for its client."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if fields[1].endswith(wanted) and fields[3] == "0A":
                    return True
    return False


def main():
    port = int(sys.argv[1])
    split = sys.argv.index("--")
    server = subprocess.Popen(sys.argv[2:split])
    deadline = time.monotonic() + 60
    while not listening(port):
        if server.poll() is not None:
            sys.exit(f"pair.py: the server ended before it listened, status {server.returncode}")
        if time.monotonic() > deadline:
            server.kill()
            sys.exit(f"pair.py: the server does not listen on port {port}")
        time.sleep(0.002)
    client = subprocess.Popen(sys.argv[split + 1:])
    statuses = [client.wait(), server.wait()]
    sys.exit(next((abs(status) for status in statuses if status), 0))


if __name__ == "__main__":
    main()
