"""Tests of the arithmetic: python3 test_leasehold.py"""

import json
import pathlib
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

import leasehold


class FakeClock(leasehold.Clock):
    """A clock that stands still, but for what a test adds."""

    def __init__(self):
        self.monotonic, self.wall = 100.0, 1e9

    def read(self):
        return (self.monotonic, self.wall, 0.0)

    def advance(self, seconds, asleep=False):
        self.wall += seconds
        if not asleep:
            self.monotonic += seconds


class FakeAgent(BaseHTTPRequestHandler):
    """Everything is ours, under generation 7, for 800 ms."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.delay()
        answer = {"id": "x", "max_promise_ms": 3600_000}  # so that nobody asks but the test
        if self.path.endswith("/leases"):
            lease = {"start": "0" * 16, "limit": "end", "generation": str((1 << 63) + 7)}
            answer = {"leases": [lease], "valid_for_ms": 800}
        self.send(200, answer)

    def do_GET(self):
        self.send(404, {"error": {"kind": "not_found", "message": "no stream"}})

    do_DELETE = do_GET

    def send(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class TestOwner(unittest.TestCase):
    def setUp(self):
        self.server = HTTPServer(("127.0.0.1", 0), FakeAgent)
        self.server.delay = lambda: None
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.clock = FakeClock()
        agent = leasehold.Agent(f"http://127.0.0.1:{self.server.server_port}", clock=self.clock)
        self.owner = agent.join("n", "a:1")

    def tearDown(self):
        self.owner._closed.set()
        self.server.shutdown()
        self.server.server_close()

    def found(self):
        return self.owner._find(leasehold.key_of("alice")) is not None

    def test_an_answer_is_good_for_as_long_as_it_says(self):
        lease = self.owner.check("alice")
        self.assertEqual((lease.generation, lease.key), ((1 << 63) + 7, leasehold.key_of("alice")))
        self.clock.advance(0.799)
        self.assertTrue(self.found())
        self.clock.advance(0.002)
        self.assertFalse(self.found())
        self.assertTrue(self.owner.held(lease))  # it asks, and the generation is the same

    def test_time_under_way_counts(self):
        self.server.delay = lambda: self.clock.advance(0.5)
        self.owner.check("alice")
        self.assertTrue(self.found())
        self.clock.advance(0.301)
        self.assertFalse(self.found())
        self.server.delay = lambda: self.clock.advance(0.9)
        self.assertIsNone(self.owner.check("alice"))  # true once, and over when it arrives

    def test_sleep_counts(self):
        self.owner.check("alice")
        self.clock.advance(1.0, asleep=True)
        self.assertFalse(self.found())

    def test_the_past_is_not_the_future(self):
        self.owner.check("alice")
        self.clock.wall -= 3600  # somebody sets the clock
        self.assertTrue(self.found())
        self.clock.advance(0.801)
        self.assertFalse(self.found())

    def test_without_an_agent_nothing_is_owned(self):
        self.owner.check("alice")
        self.server.delay = lambda: self.fail("it was asked")
        self.owner.agent.address = "http://127.0.0.1:1"
        self.assertTrue(self.owner.check("alice"))
        self.clock.advance(0.801)
        self.assertIsNone(self.owner.check("alice"))


class TestKeys(unittest.TestCase):
    def test_vectors(self):
        vectors = pathlib.Path(__file__).parents[3] / "testdata" / "keyhash.tsv"
        lines = [l for l in vectors.read_text().splitlines() if not l.startswith("#")]
        self.assertGreater(len(lines), 10)
        for line in lines:
            name, key = line.split("\t")
            self.assertEqual(f"{leasehold.key_of(bytes.fromhex(name)):016x}", key)


if __name__ == "__main__":
    unittest.main()
