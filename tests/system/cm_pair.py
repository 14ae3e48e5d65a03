#!/usr/bin/python3
"""Runs a server and its clients of librdmacm to the end: cm_pair.py PORT SERVER... -- CLIENT...
[-- CLIENT...]

The clients start together once an rdma_cm id listens at PORT, as `rocemu show` says. Exit status 0
if all had 0; otherwise the first other one. Meant to run under `rocemu run`.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

ROCEMU = str(pathlib.Path(os.environ["ROCEMU_BIN"]) / "rocemu")


def listening(port):
    shown = subprocess.run([ROCEMU, "show", "--json"], stdout=subprocess.PIPE, check=True)
    return any(one["port"] == port for one in json.loads(shown.stdout)["fabric"]["listeners"])


def split(arguments):
    commands = [[]]
    for argument in arguments:
        if argument == "--":
            commands.append([])
        else:
            commands[-1].append(argument)
    return commands


def main():
    port = int(sys.argv[1])
    server_command, *client_commands = split(sys.argv[2:])
    server = subprocess.Popen(server_command)
    deadline = time.monotonic() + 60
    while not listening(port):
        if server.poll() is not None:
            sys.exit(f"cm_pair.py: the server ended before it listened, status {server.returncode}")
        if time.monotonic() > deadline:
            server.kill()
            sys.exit(f"cm_pair.py: the server does not listen at port {port}")
    clients = [subprocess.Popen(command) for command in client_commands]
    statuses = [client.wait() for client in clients]
    if "CM_PAIR_KILLS_SERVER" in os.environ:  # one that serves for ever
        server.kill()
        server.wait()
    else:
        statuses.append(server.wait())
    sys.exit(next((abs(status) for status in statuses if status), 0))


if __name__ == "__main__":
    main()
