"""Leasehold for programs in Python, through a local agent ("leasehold agent").

    from leasehold import Agent

    agent = Agent("http://127.0.0.1:7404")          # or "unix:/run/leasehold/agent.sock"
    owner = agent.join("presence", addr="10.0.0.1:8080")
    lease = owner.check("alice")                     # do I own the key? (None: no)
    ...                                              # operate on state stamped with lease.generation
    if not owner.held(lease): ...                    # have I owned it all along?

    found = agent.lookup("presence").find("alice")   # where is it?
    for loss in agent.lookup("presence").losses():   # what has been lost?
        ...

Nothing but the standard library is needed. What an answer of the agent is worth is
in docs/AGENT.md; this module does the arithmetic.
"""

import contextlib
import http.client
import json
import os
import random
import socket
import threading
import time
import traceback
import urllib.parse

KEY_DIGITS = 16
END = 1 << 64
YOUNG = 0.05  # seconds for which nobody asks again about a key that is not ours
MAX_COSTS = 1000  # in one report
MAX_SEEN = 4096  # leases that are remembered until we hear that they have ended


class Error(Exception):
    """What the agent has to say, or why it says nothing. kind is one of those that
    docs/AGENT.md lists; "unreachable" means that there is no agent, or that something
    else answers in its place."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@contextlib.contextmanager
def _reading():
    """Whoever answers with something else than an agent does is none."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as e:
        raise Error("unreachable", f"this is no agent: {e!r}") from e


def _object(text):
    with _reading():
        document = json.loads(text)
        if not isinstance(document, dict):
            raise TypeError("its answer is no object")
        return document


class Clock:
    """How much time has passed at most since a reading.

    A clock that stands still while the computer sleeps would make an answer of
    yesterday true today. So we read several, and believe the one that has advanced
    most: CLOCK_BOOTTIME goes on in sleep where it exists, and so does the wall
    clock, as long as nobody sets it back.
    """

    _boot = getattr(time, "CLOCK_BOOTTIME", None)

    def read(self):
        boot = time.clock_gettime(self._boot) if self._boot is not None else 0.0
        return (time.monotonic(), time.time(), boot)

    def since(self, reading):
        return max(now - then for now, then in zip(self.read(), reading))


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Agent:
    """An agent at an address. It may be used from many threads."""

    def __init__(self, address="http://127.0.0.1:7404", timeout=2.0, clock=None):
        self.address = address
        self._target()  # what is no address is refused here
        self.timeout = timeout  # how long to wait for an answer to a question
        self.clock = clock or Clock()

    def join(self, namespace, addr, name="", weight=1.0, ttl=10.0, timeout=30.0, on_revoke=None, load="checks"):
        """Makes this program an owner until close(). It joins again by itself when the
        agent was restarted, or has not heard of us for too long. addr is where callers
        reach us. on_revoke(leases, cause), if given, is called when leases have ended,
        on threads of ours: their generations, and all older ones, have ended on all of
        their keys. It is for clearing away; nobody waits for it, and what it raises is
        printed. The agent does not see the checks that are answered here: for keys to be
        spread by load, join with load="reported", and report().

        An owner belongs to its process. In a child after a fork it owns nothing."""
        request = {
            "namespace": namespace, "addr": addr, "name": name, "weight": weight, "load": load, "ttl_ms": int(ttl * 1000),
        }
        return Owner(self, request, timeout, on_revoke)

    def lookup(self, namespace):
        return Lookup(self, namespace)

    def _target(self):
        """The path of a socket, or host and port."""
        if self.address.startswith("unix:") and self.address != "unix:":
            return self.address[len("unix:") :], None, None
        try:
            parts = urllib.parse.urlsplit(self.address)
            if parts.scheme == "http" and parts.hostname and parts.path in ("", "/"):
                return None, parts.hostname, parts.port or 80
        except ValueError:
            pass  # a port that is no number, for instance
        raise Error("invalid", f"{self.address!r} is no address of an agent: want http://HOST:PORT, such as http://127.0.0.1:7404, or unix:/PATH")

    def connection(self, timeout):
        path, host, port = self._target()
        if path:
            return _UnixConnection(path, timeout)
        return http.client.HTTPConnection(host, port, timeout=timeout)

    def _unreachable(self, e):
        why = getattr(e, "strerror", None) or str(e) or repr(e)
        return Error("unreachable", f"no agent answers at {self.address}: {why}")

    def call(self, method, path, body=None, timeout=None):
        """Asks, and returns the answer with the reading of the clock from before the
        question was sent: what an answer says counts from there."""
        sent = self.clock.read()
        connection = self.connection(timeout or self.timeout)
        try:
            self._send(connection, method, path, body)
            response = connection.getresponse()
            return self._answer(response), sent
        except (OSError, http.client.HTTPException) as e:
            raise self._unreachable(e) from e
        finally:
            connection.close()

    def lines(self, path, silence=15.0):
        """Yields the documents of a stream until it ends. The agent speaks every five
        seconds; one that is silent for longer than silence is taken for dead."""
        connection = self.connection(silence)
        try:
            self._send(connection, "GET", path, None)
            response = connection.getresponse()
            if response.status != 200:
                self._answer(response)
            while line := response.readline(1 << 20):
                yield _object(line)
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise self._unreachable(e) from e
        finally:
            connection.close()

    @staticmethod
    def _send(connection, method, path, body):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)

    @staticmethod
    def _answer(response):
        document = _object(response.read(16 << 20) or b"{}")
        if response.status >= 300:
            with _reading():
                kind, message = str(document["error"]["kind"]), document["error"]["message"]
            raise Error(kind, message)
        return document


class Lease:
    """The right to a range of keys, as it was found for one of them."""

    def __init__(self, document, key=None):
        self.start = int(document["start"], KEY_DIGITS)
        self.limit = END if document["limit"] == "end" else int(document["limit"], KEY_DIGITS)
        self.generation = int(document["generation"])  # the fencing token
        self.key = key

    @classmethod
    def of(cls, start, limit, generation, key=None):
        lease = cls.__new__(cls)
        lease.start, lease.limit, lease.generation, lease.key = start, limit, generation, key
        return lease

    def covers(self, key):
        return self.start <= key < self.limit

    def __repr__(self):
        return f"{self.start:016x}-{self.limit:x}@{self.generation}"


class Owner:
    """A program that has joined. check and held may be called from many threads.

    A thread asks the agent for all leases several times while an answer is good. So
    check and held look at the clock and at a list, and ask the agent only if the
    thread has not kept up, or if the key is not in the list: then many threads ask
    together, and not more often than every YOUNG seconds.

    last_error is why the agent could not be asked, or joined again, the last time that
    this was tried; None if it went well.
    """

    def __init__(self, agent, request, timeout, on_revoke):
        self.agent = agent
        self.last_error = None
        self._request = request
        self._on_revoke = on_revoke
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._id = None
        self._leases, self._sent, self._good = [], agent.clock.read(), 0.0
        self._answered = False  # in this session
        self._flight = None  # an Event while somebody asks for others, too
        self._newest = 0  # generation of this session
        self._seen = {}  # (start, limit, generation) of leases that have not ended as far as we heard
        self._closed = threading.Event()
        self._interval = 0.1
        self._join(timeout)
        self._threads = [threading.Thread(target=self._keep, daemon=True), threading.Thread(target=self._follow, daemon=True)]
        for thread in self._threads:
            thread.start()

    def check(self, name=None, key=None):
        """Returns the lease that covers a key, or None if we do not own it. The answer is
        about this moment; ask held(lease) before a result leaves the program."""
        key = key_of(name) if key is None else key
        lease = self.check_now(key=key)
        if lease is None:  # it may be new, or we have not asked for too long
            self._ask()
            lease = self.check_now(key=key)
        return lease

    def check_now(self, name=None, key=None):
        """Is check without asking anybody: it may not know yet what is new."""
        key = key_of(name) if key is None else key
        for lease in self._held():
            if lease.covers(key):
                return Lease.of(lease.start, lease.limit, lease.generation, key)
        return None

    def held(self, lease):
        """Reports whether a lease has been held since it was checked: on the key that it
        was found for, or on all of its keys if it is one of leases()."""
        if self.held_now(lease):
            return True
        self._ask()
        return self.held_now(lease)

    def held_now(self, lease):
        """Is held without asking anybody."""
        if lease.key is None:
            return not _ended([(lease.start, lease.limit, lease.generation)], self._held())
        now = self.check_now(key=lease.key)
        return now is not None and now.generation == lease.generation

    def leases(self):
        """Returns all leases that are held now."""
        return list(self._held())

    def _held(self):
        if os.getpid() != self._pid:  # before the lock, which a fork may have left taken
            return []
        with self._lock:
            return self._leases if self._fresh() else []

    def wait(self, name=None, key=None, timeout=10.0):
        """Waits until a key is owned, and returns its lease, or None. Raises an Error if the
        agent cannot be asked."""
        key = key_of(name) if key is None else key
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            ms = min(max(int(left * 1000), 1), 10000)
            self._post("await", {"key": _hex(None, key), "timeout_ms": ms}, ms / 1000 + self.agent.timeout)
            self._refresh()
            lease = self.check_now(key=key)
            if lease is not None or left <= 0:
                return lease
            time.sleep(YOUNG)  # it is there, and about to go

    def report(self, costs):
        """Says what work has cost: costs maps names, or keys, to numbers, in a unit that is
        the same for all owners. For those that joined with load="reported"."""
        entries = [{"key": _hex(k, k if isinstance(k, int) else None), "cost": cost} for k, cost in costs.items()]
        for at in range(0, len(entries), MAX_COSTS):
            self._post("report", {"costs": entries[at : at + MAX_COSTS]})

    def close(self):
        """Gives everything back. No check succeeds from its beginning on. If there is no
        agent any more, or it has closed us, the leases run out: that is no error."""
        if os.getpid() != self._pid:
            return
        self._closed.set()
        with self._lock:
            owner = self._id
            self._forget()
        if owner:
            self._leave(owner)

    def _leave(self, owner):
        try:
            self.agent.call("DELETE", f"/v1/owners/{owner}", timeout=30)
        except Error as e:
            if e.kind not in ("not_found", "closed", "unreachable"):
                raise

    def _forget(self):
        self._id, self._leases, self._good, self._answered = None, [], 0.0, False

    def _fresh(self):
        return self.agent.clock.since(self._sent) < self._good

    def _post(self, what, body, timeout=None):
        """Asks about this owner. Returns whom the answer is about, the answer, and the
        reading of the clock that it counts from."""
        if os.getpid() != self._pid:
            raise Error("closed", "this owner has joined in another process, before a fork")
        with self._lock:
            owner = self._id
        if owner is None:
            raise Error("closed", "this owner has not joined")
        return (owner, *self.agent.call("POST", f"/v1/owners/{owner}/{what}", body, timeout))

    def _ask(self):
        """Refreshes, unless that was done a moment ago. Who comes while another asks waits
        for the same answer. Failure is told by last_error."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._answered and self.agent.clock.since(self._sent) < YOUNG:
                return
            flight, leads = self._flight, self._flight is None
            if leads:
                flight = self._flight = threading.Event()
        if not leads:
            flight.wait()  # which the agent's timeout bounds
            return
        try:
            self._refresh()
        except Error as e:
            self.last_error = e
        finally:
            with self._lock:
                self._flight = None
            flight.set()

    def _refresh(self):
        """Asks for all leases. The answer counts from before the question."""
        owner, document, sent = self._post("leases", {})
        with _reading():
            leases, good = [Lease(l) for l in document["leases"]], document["valid_for_ms"] / 1000
        with self._lock:
            if owner == self._id and sent >= self._sent:  # answers may overtake each other
                self._leases, self._sent, self._good, self._answered = leases, sent, good, True
                self._newest = max([self._newest] + [l.generation for l in leases])
                self._see(leases)
        self.last_error = None

    def _see(self, leases):
        for l in leases:
            self._seen[l.start, l.limit, l.generation] = None
        while len(self._seen) > MAX_SEEN:  # only memory is cleared away later
            del self._seen[next(iter(self._seen))]

    def _join(self, timeout):
        request = dict(self._request, timeout_ms=int(min(timeout, 60) * 1000))
        document, _ = self.agent.call("POST", "/v1/owners", request, timeout=timeout + 5)
        with _reading():
            owner, interval = str(document["id"]), max(document["max_promise_ms"] / 1000 / 4, 0.01)
        with self._lock:
            if not self._closed.is_set():
                self._id, self._interval, self._newest, self._seen = owner, interval, 0, {}
                return
        self._leave(owner)

    def _keep(self):
        """Keeps in touch. A program that is stopped here, or dies, is an owner no more
        when the agent has not heard of it for the ttl."""
        while not self._closed.wait(self._interval):
            try:
                self._refresh()
            except Error as e:
                self.last_error = e
                if e.kind in ("not_found", "closed") and not self._closed.is_set():
                    self._again()

    def _again(self):
        """Joins once more. Whatever we had has ended, and what comes has newer
        generations."""
        with self._lock:
            newest = self._newest
            self._newest = 0
            self._forget()
        if newest:
            self._revoke([Lease.of(0, END, newest)], "closed")
        try:
            self._join(30.0)
            self.last_error = None
        except Error as e:
            self.last_error = e
            self._closed.wait(random.uniform(0.1, 1.0))

    def _revoke(self, leases, cause):
        """Calls on_revoke. A bug there must not end the thread that keeps us an owner."""
        if not leases or not self._on_revoke:
            return
        try:
            self._on_revoke(leases, cause)
        except Exception:
            traceback.print_exc()

    def _follow(self):
        """Follows the events. That the stream breaks when we die is how the agent
        learns of it at once."""
        while not self._closed.is_set():
            with self._lock:
                owner, before = self._id, list(self._seen)
            try:
                if owner:
                    self._listen(owner, before)
            except Error:
                pass  # _keep finds out what is wrong with the agent
            self._closed.wait(random.uniform(0.1, 0.3))

    def _listen(self, owner, before):
        """Hears one stream. What was seen before it was opened and is not in its first
        line ended while nobody listened. When it says that it has left something out, we
        open another, for the same reason: what we see meanwhile may be newer than its line."""
        first = True
        for event in self.agent.lines(f"/v1/owners/{owner}/events"):
            with _reading():
                kind, leases = event["type"], [Lease(l) for l in event.get("leases", [])]
                cause = str(event.get("cause", "unknown"))
            if kind == "leases" and not first:
                return
            if kind == "leases":
                first, ended, cause = False, _ended(before, leases), "unknown"
            elif kind == "revoked":
                ended = leases
            else:
                ended = []
            with self._lock:
                if owner != self._id:
                    return  # all of it has ended, and was said to
                if kind in ("leases", "granted"):
                    self._see(leases)
                self._seen = _without(self._seen, ended)
            self._revoke(ended, cause)


def _cut(pieces, lease):
    """Yields the parts of (start, limit) pieces that a lease does not cover."""
    for start, limit in pieces:
        if start < lease.start:
            yield start, min(limit, lease.start)
        if lease.limit < limit:
            yield max(start, lease.limit), limit


def _ended(before, now):
    """Returns as leases what was held before and is not held under its generation now."""
    held = {}
    for l in now:
        held.setdefault(l.generation, []).append(l)
    ended = []
    for start, limit, generation in before:
        pieces = [(start, limit)]
        for l in held.get(generation, []):
            pieces = list(_cut(pieces, l))
        ended += [Lease.of(s, e, generation) for s, e in pieces]
    return ended


def _without(seen, ended):
    """Returns what is left of those seen. A generation ends with all older ones."""
    for l in ended:
        left = {}
        for start, limit, generation in seen:
            pieces = [(start, limit)] if generation > l.generation else _cut([(start, limit)], l)
            left.update(((s, e, generation), None) for s, e in pieces)
        seen = left
    return seen


class Lookup:
    """Where the keys of a namespace are."""

    def __init__(self, agent, namespace):
        self.agent = agent
        self._path = "/v1/namespaces/" + urllib.parse.quote(namespace, safe="")

    def find(self, name=None, key=None, refresh=False):
        """Returns the answer of the agent; its "addr" is where the key is. It is a hint:
        the server knows whether it owns the key. An Error of kind "no_owner" says that
        nobody does for now."""
        query = {"key": _hex(name, key)}
        if refresh:
            query["refresh"] = "true"
        document, _ = self.agent.call("GET", f"{self._path}/find?{urllib.parse.urlencode(query)}", timeout=10)
        return document

    def do(self, name, f, attempts=40, patience=30.0):
        """Calls f(addr) with the server that owns the key, and again, after a pause, as
        long as f returns None: the server was not the owner, or was not there. Only for
        requests that may be carried out twice."""
        deadline = time.monotonic() + patience
        why = None
        for attempt in range(attempts):
            try:
                found = self.find(name, refresh=attempt > 0)
                with _reading():
                    addr = found["addr"]
                answer = f(addr)
                if answer is not None:
                    return answer
                why = Error("not_owner", f"no server says that it owns {name!r}")
            except Error as e:
                if e.kind not in ("no_owner", "unavailable", "unreachable"):
                    raise
                why = e
            pause = min(1.0, 0.01 * 2**attempt) * random.uniform(0.5, 1.0)
            if time.monotonic() + pause > deadline:
                break
            time.sleep(pause)
        raise why

    def losses(self, since=None):
        """Yields losses as they happen, for ever: dictionaries with start, limit, owner,
        generation, cause, lsn and resume. It resumes where it was when the agent was restarted.
        With resume of an earlier loss it begins after that."""
        while True:
            try:
                path = f"{self._path}/losses" + (f"?since={since}" if since is not None else "")
                for line in self.agent.lines(path):
                    with _reading():
                        kind = line["type"]
                        if kind == "begin":
                            since = line["lsn"]
                        elif kind == "loss":
                            since = line.get("resume", line["lsn"])  # an older agent has no resume
                    if kind == "loss":
                        yield line
            except Error as e:
                if e.kind not in ("unreachable", "unavailable", "closed", "limit"):
                    raise
            time.sleep(random.uniform(0.1, 1.0))


def _hex(name, key):
    return f"{key_of(name) if key is None else key:016x}"


def key_of(name):
    """The key of a name: XXH64 with seed 0, as every Leasehold library has it. A text is
    hashed as UTF-8; one that has none, such as half of a surrogate pair, is a ValueError."""
    data = name.encode() if isinstance(name, str) else name
    p1, p2, p3, p4, p5 = (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
    )
    mask = END - 1

    def rotate(x, bits):
        return ((x << bits) | (x >> (64 - bits))) & mask

    def mix(acc, lane):
        return rotate((acc + lane * p2) & mask, 31) * p1 & mask

    def word(at, size):
        return int.from_bytes(data[at : at + size], "little")

    at, n = 0, len(data)
    if n >= 32:
        acc = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while at + 32 <= n:
            acc = [mix(a, word(at + 8 * i, 8)) for i, a in enumerate(acc)]
            at += 32
        h = sum(rotate(a, bits) for a, bits in zip(acc, (1, 7, 12, 18))) & mask
        for a in acc:
            h = ((h ^ mix(0, a)) * p1 + p4) & mask
    else:
        h = p5
    h = (h + n) & mask
    while at + 8 <= n:
        h = (rotate(h ^ mix(0, word(at, 8)), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= n:
        h = (rotate(h ^ (word(at, 4) * p1 & mask), 23) * p2 + p3) & mask
        at += 4
    while at < n:
        h = rotate(h ^ (data[at] * p5 & mask), 11) * p1 & mask
        at += 1
    h = (h ^ (h >> 33)) * p2 & mask
    h = (h ^ (h >> 29)) * p3 & mask
    return h ^ (h >> 32)
