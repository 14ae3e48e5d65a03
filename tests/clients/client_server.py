"""Runs both sides of a client-server program in one shell, for `rocemu run`."""
import glob
import shlex
import unittest

from rocemu import free_port, rocemu_run

# Returns when a server listens at port $1.
WAIT_FOR = r"""
wait_for() {
  until grep -q " 0*[0-9A-F]*:$(printf %04X "$1") [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6
  do kill -0 $server || exit 99; sleep 0.02; done
}
"""

needs_ucx_with_verbs = unittest.skipUnless(
    glob.glob("/usr/lib/*/ucx/libuct_ib.so*"),
    "the distribution's UCX is built without its module for verbs, as 1.23 in Debian sid is")


def run_pair(server, client, *, port=None, port_option="-p", after="", options=(), **keywords):
    """Runs both programs with one NIC. Returns the result, whose status is 0 if both had 0. The server's
    output follows the client's. `after` is a command that runs before the NIC ends."""
    if port is None:
        port = free_port()
        server, client = [*server, port_option, port], [*client, port_option, port]
    quoted = [shlex.join(map(str, side)) for side in (server, client)]
    script = f"""{WAIT_FOR}
        said=$(mktemp); trap 'rm -f $said' EXIT
        {quoted[0]} >$said 2>&1 & server=$!
        wait_for {port}
        {quoted[1]}; status=$?
        [ $status = 0 ] || kill $server
        wait $server; served=$?
        cat $said
        {after}
        [ $status = 0 ] && exit $served; exit $status"""
    return rocemu_run("bash", "-c", script, options=options, **keywords)
