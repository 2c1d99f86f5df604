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

import http.client
import json
import random
import socket
import threading
import time
import urllib.parse

KEY_DIGITS = 16
END = 1 << 64


class Error(Exception):
    """What the agent has to say, or why it says nothing. kind is one of those that
    docs/AGENT.md lists; "unreachable" means that there is no agent."""

    def __init__(self, kind, message):
        super().__init__(f"{kind}: {message}")
        self.kind = kind


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
        self.timeout = timeout  # how long to wait for an answer to a question
        self.clock = clock or Clock()

    def join(self, namespace, addr, name="", weight=1.0, ttl=10.0, timeout=30.0, on_revoke=None):
        """Makes this program an owner until close(). It joins again by itself when the
        agent was restarted, or has not heard of us for too long. addr is where callers
        reach us. on_revoke(leases, cause), if given, is called when leases have ended,
        on threads of ours: their generations, and all older ones, have ended on all of
        their keys. It is for clearing away; nobody waits for it."""
        request = {"namespace": namespace, "addr": addr, "name": name, "weight": weight, "ttl_ms": int(ttl * 1000)}
        return Owner(self, request, timeout, on_revoke)

    def lookup(self, namespace):
        return Lookup(self, namespace)

    def connection(self, timeout):
        if self.address.startswith("unix:"):
            return _UnixConnection(self.address[len("unix:") :], timeout)
        parts = urllib.parse.urlsplit(self.address)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)

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
            raise Error("unreachable", f"{self.address}: {e!r}") from e
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
                yield json.loads(line)
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise Error("unreachable", f"{self.address}: {e!r}") from e
        finally:
            connection.close()

    @staticmethod
    def _send(connection, method, path, body):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)

    @staticmethod
    def _answer(response):
        try:
            document = json.loads(response.read(16 << 20) or b"{}")
        except ValueError as e:
            raise Error("unreachable", f"this is no agent: {e}") from e
        if response.status >= 300:
            error = document.get("error", {})
            raise Error(error.get("kind", "internal"), error.get("message", str(response.status)))
        return document


class Lease:
    """The right to a range of keys, as it was found for one of them."""

    def __init__(self, document, key=None):
        self.start = int(document["start"], KEY_DIGITS)
        self.limit = END if document["limit"] == "end" else int(document["limit"], KEY_DIGITS)
        self.generation = int(document["generation"])  # the fencing token
        self.key = key

    def covers(self, key):
        return self.start <= key < self.limit

    def __repr__(self):
        return f"{self.start:016x}-{self.limit:x}@{self.generation}"


class Owner:
    """A program that has joined. check and held may be called from many threads.

    A thread asks the agent for all leases several times while an answer is good. So
    check and held look at the clock and at a list, and ask the agent only if the
    thread has not kept up.
    """

    def __init__(self, agent, request, timeout, on_revoke):
        self.agent = agent
        self._request = request
        self._on_revoke = on_revoke
        self._lock = threading.Lock()
        self._id = None
        self._leases, self._sent, self._good = [], agent.clock.read(), 0.0
        self._newest = 0  # generation of this session
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
        lease = self._find(key)
        if lease is None:  # it may be new, or we have not asked for too long
            try:
                self._refresh()
            except Error:
                return None
            lease = self._find(key)
        return lease

    def held(self, lease):
        """Reports whether a lease has been held on its key since it was checked."""
        now = self.check(key=lease.key)
        return now is not None and now.generation == lease.generation

    def leases(self):
        """Returns all leases that are held now."""
        with self._lock:
            return list(self._leases) if self._fresh() else []

    def close(self):
        """Gives everything back. No check succeeds from its beginning on."""
        self._closed.set()
        with self._lock:
            owner, self._id, self._leases, self._good = self._id, None, [], 0.0
        if owner:
            self.agent.call("DELETE", f"/v1/owners/{owner}", timeout=30)

    def _fresh(self):
        return self.agent.clock.since(self._sent) < self._good

    def _find(self, key):
        with self._lock:
            if not self._fresh():
                return None
            for lease in self._leases:
                if lease.covers(key):
                    return _at(lease, key)
        return None

    def _refresh(self):
        """Asks for all leases. The answer counts from before the question."""
        with self._lock:
            owner = self._id
        if owner is None:
            raise Error("closed", "this owner has not joined")
        document, sent = self.agent.call("POST", f"/v1/owners/{owner}/leases", {})
        leases = [Lease(l) for l in document["leases"]]
        with self._lock:
            if owner == self._id and sent >= self._sent:  # answers may overtake each other
                self._leases, self._sent, self._good = leases, sent, document["valid_for_ms"] / 1000
                self._newest = max([self._newest] + [l.generation for l in leases])

    def _join(self, timeout):
        request = dict(self._request, timeout_ms=int(min(timeout, 60) * 1000))
        document, _ = self.agent.call("POST", "/v1/owners", request, timeout=timeout + 5)
        with self._lock:
            if not self._closed.is_set():
                self._id, self._newest = document["id"], 0
                self._interval = document["max_promise_ms"] / 1000 / 4
                return
        self.agent.call("DELETE", f"/v1/owners/{document['id']}", timeout=30)

    def _keep(self):
        """Keeps in touch. A program that is stopped here, or dies, is an owner no more
        when the agent has not heard of it for the ttl."""
        while not self._closed.wait(self._interval):
            try:
                self._refresh()
            except Error as e:
                if e.kind in ("not_found", "closed") and not self._closed.is_set():
                    self._again()

    def _again(self):
        """Joins once more. Whatever we had has ended, and what comes has newer
        generations."""
        with self._lock:
            newest, self._id, self._leases, self._good = self._newest, None, [], 0.0
        if newest and self._on_revoke:
            everything = {"start": "0" * KEY_DIGITS, "limit": "end", "generation": str(newest)}
            self._on_revoke([Lease(everything)], "closed")
        try:
            self._join(30.0)
        except Error:
            self._closed.wait(random.uniform(0.1, 1.0))

    def _follow(self):
        """Follows the events. That the stream breaks when we die is how the agent
        learns of it at once."""
        while not self._closed.is_set():
            with self._lock:
                owner = self._id
            try:
                if owner:
                    for event in self.agent.lines(f"/v1/owners/{owner}/events"):
                        self._hear(event)
            except Error:
                pass
            self._closed.wait(random.uniform(0.1, 0.3))

    def _hear(self, event):
        if event["type"] == "revoked" and self._on_revoke:
            self._on_revoke([Lease(l) for l in event["leases"]], event["cause"])


def _at(lease, key):
    found = Lease.__new__(Lease)
    found.start, found.limit, found.generation, found.key = lease.start, lease.limit, lease.generation, key
    return found


class Lookup:
    """Where the keys of a namespace are."""

    def __init__(self, agent, namespace):
        self.agent = agent
        self._path = "/v1/namespaces/" + urllib.parse.quote(namespace, safe="")

    def find(self, name=None, key=None, refresh=False):
        """Returns the answer of the agent; its "addr" is where the key is. It is a hint:
        the server knows whether it owns the key. An Error of kind "no_owner" says that
        nobody does for now."""
        query = {"name": name} if key is None else {"key": f"{key:016x}"}
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
                answer = f(self.find(name, refresh=attempt > 0)["addr"])
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
        generation, cause and lsn. It resumes where it was when the agent was restarted.
        With an earlier lsn it begins after that."""
        while True:
            try:
                path = f"{self._path}/losses" + (f"?since={since}" if since is not None else "")
                for line in self.agent.lines(path):
                    if line["type"] in ("begin", "loss"):
                        since = line["lsn"]
                    if line["type"] == "loss":
                        yield line
            except Error as e:
                if e.kind not in ("unreachable", "unavailable", "closed", "limit"):
                    raise
            time.sleep(random.uniform(0.1, 1.0))


def key_of(name):
    """The key of a name: XXH64 with seed 0, as every Leasehold library has it."""
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
