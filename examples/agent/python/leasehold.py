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

It needs only the standard library. docs/AGENT.md defines the validity of the agent's
replies; this module computes it.
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
YOUNG = 0.05  # minimum seconds between two requests for keys that are not held
MAX_COSTS = 1000  # in one report
MAX_SEEN = 4096  # maximum number of leases kept for reporting their end


class Error(Exception):
    """An error of the agent, or of the connection to it. docs/AGENT.md lists the kinds;
    "unreachable" means that there is no agent, or that another server answers at its
    address."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind


@contextlib.contextmanager
def _reading():
    """Raises "unreachable" for replies that are not an agent's."""
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
    """The maximum time that can have passed since a reading.

    With a clock that stops while the computer sleeps, expired replies would seem
    valid. So several clocks are read, and the one that advanced most is used:
    CLOCK_BOOTTIME continues during sleep where it exists, and so does the wall
    clock, unless it is set back.
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
    """An agent at an address. It is thread-safe."""

    def __init__(self, address="http://127.0.0.1:7404", timeout=2.0, clock=None):
        self.address = address
        self._target()  # rejects invalid addresses
        self.timeout = timeout  # for the reply to a request
        self.clock = clock or Clock()

    def join(self, namespace, addr, name="", weight=1.0, ttl=10.0, timeout=30.0, on_revoke=None, load="checks"):
        """Makes this program an owner until close(). It joins again automatically after a
        restart of the agent, or if the agent has removed it for its silence. addr is the
        address for callers. on_revoke(leases, cause), if given, is called on background
        threads when leases have ended: their generations, and all older ones, have ended
        on all of their keys. It is for cleanup; nothing waits for it, and its exceptions
        are printed. The agent does not see checks that are answered locally: to balance
        keys by load, join with load="reported", and call report().

        An owner belongs to its process. In a child after a fork it owns nothing."""
        request = {
            "namespace": namespace, "addr": addr, "name": name, "weight": weight, "load": load, "ttl_ms": int(ttl * 1000),
        }
        return Owner(self, request, timeout, on_revoke)

    def lookup(self, namespace):
        return Lookup(self, namespace)

    def _target(self):
        """Returns the path of a socket, or host and port."""
        if self.address.startswith("unix:") and self.address != "unix:":
            return self.address[len("unix:") :], None, None
        try:
            parts = urllib.parse.urlsplit(self.address)
            if parts.scheme == "http" and parts.hostname and parts.path in ("", "/"):
                return None, parts.hostname, parts.port or 80
        except ValueError:
            pass  # for example a port that is not a number
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
        """Sends a request, and returns the reply with a reading of the clock from before
        the request was sent, from which the reply's durations count."""
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
        """Yields the documents of a stream until it ends. The agent sends something every
        five seconds; if it is silent for longer than silence, the stream fails."""
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
    """A lease of a range of keys, as returned for one of them."""

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
    """A program that has joined. check and held are thread-safe.

    A background thread requests all leases from the agent several times within the
    validity of a reply. So check and held read the clock and a list, and send a request
    only if the thread is late or the key is not in the list. Concurrent requests are
    merged, and sent at most every YOUNG seconds.

    last_error is the error of the last request or join, None if it succeeded.
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
        self._flight = None  # an Event during a request whose reply others wait for
        self._newest = 0  # generation of this session
        self._seen = {}  # (start, limit, generation) of leases whose end was not reported yet
        self._closed = threading.Event()
        self._interval = 0.1
        self._join(timeout)
        self._threads = [threading.Thread(target=self._keep, daemon=True), threading.Thread(target=self._follow, daemon=True)]
        for thread in self._threads:
            thread.start()

    def check(self, name=None, key=None):
        """Returns the lease that covers a key, or None if this owner does not hold it. The
        result is valid for this moment; call held(lease) before a result leaves the
        program."""
        key = key_of(name) if key is None else key
        lease = self.check_now(key=key)
        if lease is None:  # it may be new, or the last reply is too old
            self._ask()
            lease = self.check_now(key=key)
        return lease

    def check_now(self, name=None, key=None):
        """Is check without communication: it may not know new leases yet."""
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
        """Is held without communication."""
        if lease.key is None:
            return not _ended([(lease.start, lease.limit, lease.generation)], self._held())
        now = self.check_now(key=lease.key)
        return now is not None and now.generation == lease.generation

    def leases(self):
        """Returns all leases that are held now."""
        return list(self._held())

    def _held(self):
        if os.getpid() != self._pid:  # before the lock, which may be locked for ever after a fork
            return []
        with self._lock:
            return self._leases if self._fresh() else []

    def wait(self, name=None, key=None, timeout=10.0):
        """Waits until a key is owned, and returns its lease, or None. Raises an Error if a
        request to the agent fails."""
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
            time.sleep(YOUNG)  # it exists, but is about to end

    def report(self, costs):
        """Reports the cost of work: costs maps names, or keys, to numbers, in the same unit
        for all owners. For owners that joined with load="reported"."""
        entries = [{"key": _hex(k, k if isinstance(k, int) else None), "cost": cost} for k, cost in costs.items()]
        for at in range(0, len(entries), MAX_COSTS):
            self._post("report", {"costs": entries[at : at + MAX_COSTS]})

    def close(self):
        """Releases all leases. Once called, no check succeeds. If the agent is gone, or has
        closed the owner, the leases expire: that is not an error."""
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
        """Sends a request about this owner. Returns the owner's id, the reply, and the
        reading of the clock from which it counts."""
        if os.getpid() != self._pid:
            raise Error("closed", "this owner has joined in another process, before a fork")
        with self._lock:
            owner = self._id
        if owner is None:
            raise Error("closed", "this owner has not joined")
        return (owner, *self.agent.call("POST", f"/v1/owners/{owner}/{what}", body, timeout))

    def _ask(self):
        """Refreshes, unless that was done a moment ago. Concurrent callers wait for the same
        reply. Errors are stored in last_error."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._answered and self.agent.clock.since(self._sent) < YOUNG:
                return
            flight, leads = self._flight, self._flight is None
            if leads:
                flight = self._flight = threading.Event()
        if not leads:
            flight.wait()  # bounded by the agent's timeout
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
        """Requests all leases. The reply counts from before the request."""
        owner, document, sent = self._post("leases", {})
        with _reading():
            leases, good = [Lease(l) for l in document["leases"]], document["valid_for_ms"] / 1000
        with self._lock:
            if owner == self._id and sent >= self._sent:  # replies may be reordered
                self._leases, self._sent, self._good, self._answered = leases, sent, good, True
                self._newest = max([self._newest] + [l.generation for l in leases])
                self._see(leases)
        self.last_error = None

    def _see(self, leases):
        for l in leases:
            self._seen[l.start, l.limit, l.generation] = None
        while len(self._seen) > MAX_SEEN:  # only delays the cleanup of memory
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
        """Keeps the owner alive. If the program is stopped or dies, the agent removes the
        owner after the ttl without requests."""
        while not self._closed.wait(self._interval):
            try:
                self._refresh()
            except Error as e:
                self.last_error = e
                if e.kind in ("not_found", "closed") and not self._closed.is_set():
                    self._again()

    def _again(self):
        """Joins again. All previous leases have ended, and new ones have newer
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
        """Calls on_revoke. A bug there must not end the thread that keeps the owner alive."""
        if not leases or not self._on_revoke:
            return
        try:
            self._on_revoke(leases, cause)
        except Exception:
            traceback.print_exc()

    def _follow(self):
        """Follows the events. If the program dies, the stream breaks, by which the agent
        detects it at once."""
        while not self._closed.is_set():
            with self._lock:
                owner, before = self._id, list(self._seen)
            try:
                if owner:
                    self._listen(owner, before)
            except Error:
                pass  # _keep determines what is wrong with the agent
            self._closed.wait(random.uniform(0.1, 0.3))

    def _listen(self, owner, before):
        """Reads one stream. Leases seen before it was opened that are not in its first line
        ended in between. If it reports omitted events, another stream is opened, because
        leases seen meanwhile may be newer than its line."""
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
                    return  # all leases of that session have ended, and were reported
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
    """Returns the leases that were held before and are not held under their generation now."""
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
    """Returns the remaining leases of those seen. A generation ends with all older ones."""
    for l in ended:
        left = {}
        for start, limit, generation in seen:
            pieces = [(start, limit)] if generation > l.generation else _cut([(start, limit)], l)
            left.update(((s, e, generation), None) for s, e in pieces)
        seen = left
    return seen


class Lookup:
    """Finds the owners of a namespace's keys."""

    def __init__(self, agent, namespace):
        self.agent = agent
        self._path = "/v1/namespaces/" + urllib.parse.quote(namespace, safe="")

    def find(self, name=None, key=None, refresh=False):
        """Returns the agent's reply; its "addr" is the address of the key's owner. It is a
        hint: only the server knows whether it owns the key. An Error of kind "no_owner"
        means that the key has no owner at the moment."""
        query = {"key": _hex(name, key)}
        if refresh:
            query["refresh"] = "true"
        document, _ = self.agent.call("GET", f"{self._path}/find?{urllib.parse.urlencode(query)}", timeout=10)
        return document

    def do(self, name, f, attempts=40, patience=30.0):
        """Calls f(addr) with the server that owns the key, and again, after a pause, as
        long as f returns None: the server was not the owner, or not reachable. Only for
        idempotent requests."""
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
        """Yields losses as they happen, without end: dictionaries with start, limit, owner,
        generation, cause, lsn and resume. It continues after a restart of the agent. With
        resume of an earlier loss it starts after that loss."""
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
    """Returns the key of a name: XXH64 with seed 0, as in every Leasehold library. A str is
    hashed as UTF-8; one that cannot be encoded, such as half of a surrogate pair, is a ValueError."""
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
