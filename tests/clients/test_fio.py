"""Tests fio's rdma engine: WRITE, READ and SEND."""
import pathlib
import re
import unittest

from rocemu import free_port, rocemu_run, temporary_directory

SIZE, BLOCK = 16 << 20, 64 << 10


class Fio(unittest.TestCase):
    def transfer(self, verb):
        with temporary_directory() as directory:
            port = free_port()
            common = f"ioengine=rdma\nport={port}\nbs={BLOCK}\nsize={SIZE}\n"
            server = pathlib.Path(directory, "server.fio")
            # fio connects with rnr_retry_count 0, and the receiver's queue must not be shorter than
            # the sender's (fio_rdmaio_connect). This queue is deep enough for all messages, since
            # fio waits for ever if one is lost.
            server.write_text(f"[receive]\n{common}rw=read\niodepth={SIZE // BLOCK}\n")
            client = pathlib.Path(directory, "client.fio")
            # `verb` selects the operation; rw=write only says that this side sends the data.
            client.write_text(f"[send]\n{common}rw=write\nhostname=127.0.0.1\n"
                              f"verb={verb}\niodepth=16\n")
            # fio listens by rdma_cm, so its port is not in the machine's list of sockets.
            script = """fio %s & server=$!
                until rdma resource show cm_id | grep -q 'state LISTEN'; do
                  kill -0 $server || exit 99; done
                fio %s; status=$?
                [ $status = 0 ] || kill $server
                wait $server && exit $status"""
            result = rocemu_run("bash", "-c", script % (server, client), cwd=directory, timeout=60)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"WRITE: .*io=16\.0MiB")
        self.assertEqual(re.findall(r"err= *([1-9]\d*)", result.stdout), [])

    def test_write(self):
        self.transfer("write")

    def test_read(self):
        self.transfer("read")

    def test_send(self):
        self.transfer("send")


if __name__ == "__main__":
    unittest.main()
