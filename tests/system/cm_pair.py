#!/usr/bin/python3
"""Runs a server and its clients, which use librdmacm, to the end: cm_pair.py PORT SERVER... --
CLIENT... [-- CLIENT...]

The first client starts once an rdma_cm id listens at PORT. Each further client starts once `rocemu
show` lists the connections of all earlier ones, because a server that stores only one request at a
time, as rping's does, would confuse them. The exit status is 0 if all had 0; otherwise the first
other one. If a client failed and the server still waits for it, the server is killed. Meant to run
under `rocemu run`.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

ROCEMU = str(pathlib.Path(os.environ["ROCEMU_BIN"]) / "rocemu")
PATIENCE = 10  # seconds in which a server must notice that a client failed


def show():
    shown = subprocess.run([ROCEMU, "show", "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(shown.stdout)


def listening(port):
    return any(one["port"] == port for one in show()["fabric"]["listeners"])


def connected(clients):
    """Returns whether all clients that still run have a connection. Each connection has two
    ends."""
    running = sum(client.poll() is None for client in clients)
    ready = sum(qp["state"] == "RTS" for device in show()["fabric"]["devices"]
                for qp in device["qps"])
    return ready >= 2 * running


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
    clients = []
    for command in client_commands:
        clients.append(subprocess.Popen(command))
        while command is not client_commands[-1] and not connected(clients):
            if time.monotonic() > deadline + 60:
                server.kill()
                sys.exit("cm_pair.py: a client is not connected after a minute")
            time.sleep(0.002)
    statuses = [client.wait() for client in clients]
    if "CM_PAIR_KILLS_SERVER" in os.environ:  # the server does not end by itself
        server.kill()
        server.wait()
    else:
        try:
            statuses.append(server.wait(PATIENCE if any(statuses) else None))
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
    sys.exit(next((abs(status) for status in statuses if status), 0))


if __name__ == "__main__":
    main()
