"""The program under test, here libibverbs' own example: a server on one device, a client on the other."""
import rocemu


def run(fabric, round_trips=10):
    """Returns the exit statuses of client and server."""
    port = str(rocemu.free_port())
    command = ["ibv_rc_pingpong", "-g", "0", "-n", str(round_trips), "-p", port]
    server = fabric.popen([*command, "-d", "rocemu0"])
    fabric.wait_listening(int(port))
    client = fabric.run([*command, "-d", "rocemu1", "localhost"], timeout=60)
    if client.returncode != 0:
        server.terminate()  # it waits for ever for a client that failed
    return client.returncode, server.wait(60)
