#!/usr/bin/python3
"""Runs a server and its client to the end, and prints as JSON how each ended: two_sides.py SECONDS
tcp|cm PORT SERVER... -- CLIENT...

The client starts once a process listens at PORT of TCP, or of the connection manager. When one side
has failed, the other one has some time to notice. A side that has not ended then, or after SECONDS,
is killed, and has no status. Meant to run under `rocemu run`.
"""
import json
import subprocess
import sys
import tempfile
import time

import cm_pair
import pair

# seconds, of virtual time if the clock is virtual: longer than all retries
TO_LISTEN, TO_NOTICE = 60, 80
LISTENS = {"tcp": pair.listening, "cm": cm_pair.listening}


class Side:
    def __init__(self, command):
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=self.output, stderr=self.output)
        self.status = None

    def running(self):
        if self.status is None:
            self.status = self.process.poll()
        return self.status is None

    def end(self):
        if self.running():
            self.process.kill()
            self.process.wait()

    def report(self):
        self.output.seek(0)
        return {"status": self.status, "output": self.output.read().decode(errors="replace")}


def wait(sides, seconds):
    """Waits until all sides have ended, one has failed, or the time is over."""
    deadline = time.monotonic() + seconds
    pause = 0.01
    while time.monotonic() < deadline:
        running = [side.running() for side in sides]
        if not any(running) or any(side.status for side in sides):
            return
        time.sleep(pause)
        pause = min(pause * 1.1, 1)


def main():
    seconds, kind, port, *arguments = sys.argv[1:]
    split = arguments.index("--")
    server = Side(arguments[:split])
    sides = [server]
    deadline = time.monotonic() + TO_LISTEN
    while not LISTENS[kind](int(port)) and server.running() and time.monotonic() < deadline:
        time.sleep(0.002)
    client = Side(arguments[split + 1:])
    sides.append(client)
    wait(sides, float(seconds))
    if any(side.status for side in sides):
        wait([side for side in sides if side.running()], TO_NOTICE)
    for side in sides:
        side.end()
    print(json.dumps({"server": server.report(), "client": client.report()}))


if __name__ == "__main__":
    main()
