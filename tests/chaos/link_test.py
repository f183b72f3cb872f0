"""A link forwards, ends connections, and delivers late what it has held."""

import socket
import threading
import unittest

from link import Link, replay

PATIENCE_SECONDS = 60


class LinkTest(unittest.TestCase):
    def setUp(self):
        self.listener = self.enterContext(socket.create_server(("127.0.0.1", 0)))
        self.link = Link(self.listener.getsockname())
        self.addCleanup(self.link.close)

    def connect(self):
        """(client's end, server's end)."""
        client = self.enterContext(
            socket.create_connection(("127.0.0.1", self.link.port), PATIENCE_SECONDS))
        server = self.enterContext(self.listener.accept()[0])
        server.settimeout(PATIENCE_SECONDS)
        return client, server

    def expect_silence(self, end):
        end.setblocking(False)
        with self.assertRaises(BlockingIOError):
            end.recv(1)
        end.settimeout(PATIENCE_SECONDS)

    def test_it_forwards_both_ways_and_the_end(self):
        client, server = self.connect()
        client.sendall(b"request")
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(server.makefile("rb").read(), b"request")
        server.sendall(b"answer")
        server.close()
        self.assertEqual(client.makefile("rb").read(), b"answer")

    def test_cut_ends_connections_and_refuses_new_ones(self):
        client, server = self.connect()
        self.link.cut()
        self.assertEqual(client.recv(1), b"")
        self.assertEqual(server.recv(1), b"")
        with socket.create_connection(("127.0.0.1", self.link.port), PATIENCE_SECONDS) as new:
            self.assertEqual(new.recv(1), b"")
        self.link.heal()
        client, server = self.connect()
        client.sendall(b"x")
        self.assertEqual(server.recv(1), b"x")

    def test_a_held_request_arrives_after_its_sender_has_closed(self):
        client, server = self.connect()
        self.link.hold()
        client.sendall(b"request")
        client.close()
        self.expect_silence(server)
        self.link.heal()
        self.assertEqual(server.makefile("rb").read(), b"request")

    def test_answers_alone_are_held(self):
        client, server = self.connect()
        self.link.hold(requests=False)
        client.sendall(b"request")
        self.assertEqual(server.recv(7), b"request")
        server.sendall(b"answer")
        self.expect_silence(client)
        self.link.heal()
        self.assertEqual(client.recv(6), b"answer")

    def test_produce_requests_are_kept_and_sent_again(self):
        client, server = self.connect()
        fetch, produce = (b"\0\0\0\3\0" + bytes([kind, 7]) for kind in (1, 0))
        for part in fetch + produce[:5], produce[5:] + fetch:
            client.sendall(part)
            server.recv(100)
        self.assertEqual(list(self.link.produced), [produce])
        answered = threading.Thread(
            target=replay, args=([produce], self.listener.getsockname()))
        answered.start()
        again = self.enterContext(self.listener.accept()[0])
        self.assertEqual(again.recv(100), produce)
        again.sendall(b"\0\0\0\1x")
        answered.join()

    def test_what_is_held_when_it_is_cut_is_lost(self):
        client, server = self.connect()
        self.link.hold()
        client.sendall(b"request")
        self.link.cut()
        self.assertEqual(server.recv(1), b"")
        self.link.heal()
        self.assertEqual(client.recv(1), b"")


if __name__ == "__main__":
    unittest.main()
