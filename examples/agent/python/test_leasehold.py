"""Tests of the arithmetic: python3 test_leasehold.py"""

import json
import pathlib
import threading
import unittest
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from unittest import mock

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
            lease = {"start": "0" * 16, "limit": "end", "generation": str(self.server.generation)}
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
        self.server.delay, self.server.generation = lambda: None, (1 << 63) + 7
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.clock = FakeClock()
        agent = leasehold.Agent(f"http://127.0.0.1:{self.server.server_port}", clock=self.clock)
        self.owner = agent.join("n", "a:1")

    def tearDown(self):
        self.owner._closed.set()
        self.server.shutdown()
        self.server.server_close()

    def found(self):
        return self.owner.check_now("alice") is not None

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


def wire(*leases):
    return [{"start": f"{s:016x}", "limit": "end" if e == leasehold.END else f"{e:016x}", "generation": str(g)} for s, e, g in leases]


def parts(leases):
    return sorted((l.start, l.limit, l.generation) for l in leases)


ALL = (0, leasehold.END, 5)
HALF = 1 << 63


class Script(leasehold.Agent):
    """An agent whose answers are functions of the test, and whose streams are lists. It is
    asked by nobody but the test."""

    def __init__(self):
        super().__init__(clock=FakeClock())
        self.calls, self.streams = [], []
        self.joins = 0
        self.answer = lambda: {"leases": wire(ALL), "valid_for_ms": 800}

    def call(self, method, path, body=None, timeout=None):
        sent = self.clock.read()
        self.calls.append((method, path, body))
        if path == "/v1/owners":
            self.joins += 1
            return {"id": f"id{self.joins}", "max_promise_ms": 3600_000}, sent
        answer = self.answer()
        if isinstance(answer, Exception):
            raise answer
        return answer, sent

    def lines(self, path, silence=15.0):
        return iter(self.streams.pop(0) if self.streams else [])


class TestScripted(unittest.TestCase):
    def setUp(self):
        self.agent, self.ended = Script(), []
        with mock.patch.object(leasehold.threading.Thread, "start"):  # the test does what they do
            self.owner = self.agent.join("n", "a:1", on_revoke=lambda leases, cause: self.ended.append((parts(leases), cause)))

    def once(self, what):
        """Runs a thread's loop once."""
        waits = iter([False, True])
        closed = mock.Mock(is_set=lambda: False, wait=lambda _: next(waits))
        with mock.patch.object(self.owner, "_closed", closed):
            what()

    def listen(self, *events):
        self.agent.streams.append(events)
        with self.owner._lock:
            owner, before = self.owner._id, list(self.owner._seen)
        self.owner._listen(owner, before)

    def test_another_generation_is_not_held(self):
        lease = self.owner.check("alice")
        whole = self.owner.leases()[0]
        self.assertTrue(self.owner.held(lease) and self.owner.held_now(whole))
        self.agent.answer = lambda: {"leases": wire((0, leasehold.END, 6)), "valid_for_ms": 800}
        self.agent.clock.advance(0.1)
        self.owner._refresh()
        for l in (lease, whole):
            self.assertFalse(self.owner.held(l) or self.owner.held_now(l))
        self.assertTrue(self.owner.held(self.owner.leases()[0]))

    def test_a_whole_lease_is_held_on_all_of_its_keys(self):
        self.owner.check("alice")
        whole = self.owner.leases()[0]
        self.agent.clock.advance(0.1)
        self.agent.answer = lambda: {"leases": wire((0, HALF, 5)), "valid_for_ms": 800}
        self.owner._refresh()
        self.assertFalse(self.owner.held(whole))

    def test_an_answer_that_is_overtaken_is_dropped(self):
        def overtaken():
            self.agent.clock.advance(0.1)
            self.agent.answer = lambda: {"leases": [], "valid_for_ms": 800}
            self.owner._refresh()
            return {"leases": wire(ALL), "valid_for_ms": 800}

        self.agent.answer = overtaken
        self.owner._refresh()
        self.assertEqual(self.owner.leases(), [])

    def test_an_answer_for_a_former_session_is_dropped(self):
        def former():
            self.agent.answer = lambda: {"leases": [], "valid_for_ms": 800}
            self.owner._again()
            return {"leases": wire(ALL), "valid_for_ms": 800}

        self.agent.answer = former
        self.owner._refresh()
        self.assertEqual(self.owner.leases(), [])

    def test_joining_again_ends_everything(self):
        self.owner.check("alice")
        self.agent.answer = lambda: leasehold.Error("not_found", "who?")
        self.once(self.owner._keep)
        self.assertEqual(self.agent.joins, 2)
        self.assertEqual(self.owner.leases(), [])
        self.assertEqual(self.ended, [([(0, leasehold.END, 5)], "closed")])

    def test_a_callback_that_raises_ends_nothing(self):
        self.owner.check("alice")
        self.owner._on_revoke = mock.Mock(side_effect=RuntimeError("a bug of the application"))
        self.agent.answer = lambda: leasehold.Error("not_found", "who?")
        with mock.patch("traceback.print_exc") as printed:
            self.once(self.owner._keep)
            self.listen({"type": "revoked", "leases": wire(ALL), "cause": "released"})
        self.assertEqual((self.owner._on_revoke.call_count, printed.call_count, self.agent.joins), (2, 2, 2))

    def test_a_failed_join_is_told(self):
        self.owner.check("alice")
        self.assertIsNone(self.owner.last_error)
        self.agent.answer = lambda: leasehold.Error("not_found", "who?")
        taken = leasehold.Error("name_taken", "by another")
        with mock.patch.object(self.owner, "_join", side_effect=taken):
            waits = iter([False, False, True])
            with mock.patch.object(self.owner, "_closed", mock.Mock(is_set=lambda: False, wait=lambda _: next(waits))):
                self.owner._keep()
        self.assertIs(self.owner.last_error, taken)
        self.agent.answer = lambda: {"leases": [], "valid_for_ms": 800}
        self.once(self.owner._keep)
        self.assertEqual(self.agent.joins, 2)
        self.assertIsNone(self.owner.last_error)

    def test_closing_what_is_gone(self):
        for kind in ("not_found", "closed", "unreachable"):
            self.setUp()
            self.owner.check("alice")
            self.agent.answer = lambda: leasehold.Error(kind, "it is gone")
            self.owner.close()
            self.assertIsNone(self.owner.check_now("alice"))
            self.assertIsNone(self.owner.check("alice"))

    def test_closing_begins_with_owning_nothing(self):
        self.owner.check("alice")

        def look():
            self.assertEqual((self.owner.leases(), self.owner.check_now("alice")), ([], None))
            return {}

        self.agent.answer = look
        self.owner.close()
        self.assertEqual(self.agent.calls[-1][:2], ("DELETE", "/v1/owners/id1"))

    def test_what_ended_while_nobody_listened(self):
        self.owner.check("alice")
        self.listen({"type": "leases", "leases": wire((0, HALF, 5))})
        self.assertEqual(self.ended, [([(HALF, leasehold.END, 5)], "unknown")])
        self.ended.clear()
        self.listen({"type": "leases", "leases": wire((0, HALF, 5))})  # and only once
        self.assertEqual(self.ended, [])
        self.listen({"type": "granted", "leases": wire((HALF, leasehold.END, 8))})
        self.listen(
            {"type": "leases", "leases": wire((0, HALF, 9), (HALF, leasehold.END, 8))},
            {"type": "revoked", "leases": wire((HALF, leasehold.END, 8)), "cause": "released"},
            {"type": "unheard of"},
        )
        self.assertEqual(self.ended, [([(0, HALF, 5)], "unknown"), ([(HALF, leasehold.END, 8)], "released")])
        self.assertEqual(list(self.owner._seen), [(0, HALF, 9)])

    def test_what_is_newer_than_the_stream_has_not_ended(self):
        def events():
            self.owner.check("alice")  # is granted and seen after the line was written
            yield {"type": "leases", "leases": []}
            yield {"type": "leases", "leases": []}  # too many events: we open another
            self.fail("it listens on")

        self.agent.streams.append(events())
        self.owner._listen("id1", [])
        self.assertEqual(self.ended, [])

    def test_what_is_seen_is_bounded(self):
        for g in range(leasehold.MAX_SEEN + 10):
            self.owner._see([leasehold.Lease.of(0, 1, g)])
        self.assertEqual(len(self.owner._seen), leasehold.MAX_SEEN)

    def test_misses_are_asked_about_together(self):
        self.agent.answer = lambda: {"leases": [], "valid_for_ms": 800}
        self.agent.calls.clear()
        for _ in range(100):
            self.assertIsNone(self.owner.check("alice"))
        self.assertEqual(len(self.agent.calls), 1)
        self.agent.clock.advance(0.06)
        asked, go_on = threading.Event(), threading.Event()

        def slow():
            asked.set()
            go_on.wait(10)
            return {"leases": wire(ALL), "valid_for_ms": 800}

        self.agent.answer = slow
        got = []
        threads = [threading.Thread(target=lambda: got.append(self.owner.check("alice"))) for _ in range(20)]
        threads[0].start()
        asked.wait(10)
        with mock.patch.object(self.owner._flight, "wait", side_effect=lambda: (ready.release(), go_on.wait(10), threads[0].join(10))):
            ready = threading.Semaphore(0)
            for thread in threads[1:]:
                thread.start()
            for _ in threads[1:]:
                ready.acquire(timeout=10)
            go_on.set()
            for thread in threads:
                thread.join(10)
        self.assertEqual((len(self.agent.calls), len(got), None in got), (2, 20, False))

    def test_a_child_owns_nothing(self):
        lease = self.owner.check("alice")
        self.agent.calls.clear()
        with self.owner._lock, mock.patch("os.getpid", return_value=self.owner._pid + 1):  # a fork while it is taken
            self.assertEqual((self.owner.check("alice"), self.owner.held(lease), self.owner.leases()), (None, False, []))
            self.assertRaises(leasehold.Error, self.owner.report, {"alice": 1})
            self.owner.close()
        self.assertEqual(self.agent.calls, [])
        self.assertTrue(self.owner.held(lease))

    def test_reports(self):
        self.agent.answer = lambda: {"reported": 1}
        self.owner.report({"alice": 2, 255: 1.5})
        costs = [{"key": f"{leasehold.key_of('alice'):016x}", "cost": 2}, {"key": "00000000000000ff", "cost": 1.5}]
        self.assertEqual(self.agent.calls[-1], ("POST", "/v1/owners/id1/report", {"costs": costs}))
        self.owner.report({i: 1 for i in range(leasehold.MAX_COSTS + 1)})
        self.assertEqual([len(c[2]["costs"]) for c in self.agent.calls[-2:]], [leasehold.MAX_COSTS, 1])
        self.assertEqual(self.agent.calls[0][2]["load"], "checks")

    def test_wait(self):
        held = {"leases": wire(ALL), "valid_for_ms": 800}
        answers = [{"held": False}, {"leases": [], "valid_for_ms": 800}, {"held": True}, held]

        def answer():
            self.agent.clock.advance(0.1)
            return answers.pop(0)

        self.agent.answer = answer
        with mock.patch("time.sleep"):
            self.assertEqual(self.owner.wait("alice").generation, 5)
        self.assertEqual([c[1].split("/")[-1] for c in self.agent.calls[1:]], ["await", "leases"] * 2)
        self.agent.answer = lambda: {"leases": [], "valid_for_ms": 800}
        self.agent.clock.advance(1)
        self.assertIsNone(self.owner.wait("alice", timeout=0))


class TestStrangers(unittest.TestCase):
    """Another program has the agent's port."""

    def test_what_is_no_answer(self):
        for status, body in [
            (404, b'["x"]'), (200, b"null"), (404, b"{}"), (500, b'{"error": "x"}'), (200, b"[" * 100000), (200, b"\xff"), (200, b"{}"),
            (200, b'{"id": "x"}'), (200, b'{"id": "x", "max_promise_ms": "1"}'),
        ]:
            agent = leasehold.Agent()
            connection = mock.Mock()
            connection.getresponse.return_value = mock.Mock(
                status=status, read=lambda _, body=body: body, readline=mock.Mock(side_effect=[body, b""])
            )
            with mock.patch.object(agent, "connection", return_value=connection), self.subTest(status=status, body=body[:20]):
                with self.assertRaises(leasehold.Error) as raised:
                    agent.join("n", "a:1")
                self.assertEqual(raised.exception.kind, "unreachable")
                with self.assertRaises(leasehold.Error) as raised:
                    list(map(self.line, agent.lines("/")))
                self.assertEqual(raised.exception.kind, "unreachable")

    @staticmethod
    def line(line):
        with leasehold._reading():
            return line["type"]


class TestClock(unittest.TestCase):
    def test_the_clock_that_advances_most_is_believed(self):
        for moved in range(3):
            now = [10.0, 20.0, 30.0]
            with mock.patch("time.monotonic", lambda: now[0]), mock.patch("time.time", lambda: now[1]), mock.patch(
                "time.clock_gettime", lambda _: now[2], create=True
            ):
                clock = leasehold.Clock()
                clock._boot = 7
                reading = clock.read()
                now[moved] += 5
                self.assertEqual(clock.since(reading), 5)

    @unittest.skipUnless(hasattr(time, "CLOCK_BOOTTIME"), "this system has no CLOCK_BOOTTIME")
    def test_time_asleep_is_counted_where_it_can_be(self):
        self.assertEqual(leasehold.Clock._boot, time.CLOCK_BOOTTIME)


class TestKeys(unittest.TestCase):
    def test_half_a_character_has_no_key(self):
        self.assertRaises(ValueError, leasehold.key_of, "\ud800")

    def test_vectors(self):
        vectors = pathlib.Path(__file__).parents[3] / "testdata" / "keyhash.tsv"
        lines = [l for l in vectors.read_text().splitlines() if not l.startswith("#")]
        self.assertGreater(len(lines), 10)
        for line in lines:
            name, key = line.split("\t")
            self.assertEqual(f"{leasehold.key_of(bytes.fromhex(name)):016x}", key)


if __name__ == "__main__":
    unittest.main()
