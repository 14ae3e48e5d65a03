"""Runs the program under test, which is libibverbs' example here: a server on one device, and a client
on the other."""
import rocemu


def run(fabric, round_trips=10):
    """Runs the server and the client. Returns the exit statuses of client and server."""
    port = str(rocemu.free_port())
    command = ["ibv_rc_pingpong", "-g", "0", "-n", str(round_trips), "-p", port]
    server = fabric.popen([*command, "-d", "rocemu0"])
    fabric.wait_listening(int(port))
    client = fabric.run([*command, "-d", "rocemu1", "localhost"], timeout=60)
    if client.returncode != 0:
        server.terminate()  # it would wait for ever for the failed client
    return client.returncode, server.wait(60)
