"""An in-memory hashtable, partitioned over servers, in Python.

    python3 kv.py serve HOST:PORT       one server
    python3 kv.py put KEY VALUE         stores an entry, wherever that is
    python3 kv.py get KEY
    python3 kv.py losses                prints what is lost, as it happens

AGENT is the address of the agent, http://127.0.0.1:7404 unless set, and NAMESPACE
that of the servers, "kv" unless set. Every key has one server at a time. Entries die
with their server: its keys go to others, without them.
"""

import collections
import http.client
import os
import signal
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import leasehold

AGENT = None  # set by main
NAMESPACE = os.environ.get("NAMESPACE", "kv")
NOT_OWNER = 421
MAX_VALUE = 1 << 20


class Table:
    """One server's part of the hashtable."""

    def __init__(self):
        self.owner = None
        self.lock = threading.Lock()
        self.entries = {}  # name -> (generation, value)
        self.work = collections.Counter()  # unreported requests by name

    def do(self, name, operation):
        """Runs an operation on the value of a name. Returns the generation of the lease
        and the value, or None if this server does not own the key, or lost it meanwhile."""
        self.owner.check(name)  # may send a request to the agent, so it must be outside of the lock
        with self.lock:
            lease = self.owner.check_now(name)  # (1) is this the right server?
            if lease is None:
                return None
            generation, value = self.entries.get(name, (0, b""))
            if generation != lease.generation:  # (2) is the entry from this lease?
                value = b""
            value = operation(value)  # (3) operate, and stamp the result
            self.entries[name] = (lease.generation, value)
            if not self.owner.held_now(lease):  # (4) was the lease held throughout?
                return None
            self.work[name] += 1
        return lease.generation, value  # (5) only now is the result visible

    def report(self):
        """Reports the load of keys, by which the manager balances them."""
        with self.lock:
            work, self.work = self.work, collections.Counter()
        try:
            self.owner.report(work)
        except leasehold.Error:
            pass  # the next report will follow

    def forget(self, ended, _cause):
        """Removes the entries of ended leases."""
        with self.lock:
            for name, (generation, _) in list(self.entries.items()):
                key = leasehold.key_of(name)
                if any(l.covers(key) and generation <= l.generation for l in ended):
                    del self.entries[name]


class Handler(BaseHTTPRequestHandler):
    """Answers GET /key and PUT /key."""

    protocol_version = "HTTP/1.1"
    timeout = 10
    wbufsize = -1  # sends each response in one packet

    def do_GET(self):
        self.answer(lambda value: value)

    def do_PUT(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_VALUE:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        self.answer(lambda _: body)

    def answer(self, operation):
        try:
            name = urllib.parse.unquote(self.path[1:], errors="strict")
        except UnicodeDecodeError:  # otherwise two names could become the same
            self.send_error(400)
            return
        done = self.server.table.do(name, operation)
        generation, value = done or (0, b"not the owner")
        self.send_response(200 if done else NOT_OWNER)
        self.send_header("Content-Length", str(len(value)))
        self.send_header("Generation", str(generation))
        self.end_headers()
        self.wfile.write(value)

    def log_message(self, *_):
        pass


def serve(addr):
    host, _, port = addr.rpartition(":")
    if not host or not port.isdecimal():
        sys.exit(f"kv: {addr!r}: want HOST:PORT, where callers reach this server")
    server = ThreadingHTTPServer((host, int(port)), Handler)  # before joining: an owner must be able to serve
    server.daemon_threads = True
    server.table = table = Table()
    table.owner = AGENT.join(NAMESPACE, addr, ttl=3, on_revoke=table.forget, load="reported")
    print("serving", addr, flush=True)

    stopping = threading.Event()

    def report():
        while not stopping.wait(1):
            table.report()

    def stop():
        try:
            table.owner.close()  # before the server stops, so that callers find the next owner
        except leasehold.Error as e:
            print(f"kv: the leases run out by themselves: {e}", file=sys.stderr)
        finally:
            server.shutdown()

    def stop_once(*_):
        if not stopping.is_set():
            stopping.set()
            threading.Thread(target=stop).start()

    threading.Thread(target=report, daemon=True).start()
    signal.signal(signal.SIGTERM, stop_once)
    signal.signal(signal.SIGINT, stop_once)
    server.serve_forever()


def call(method, name, value=b""):
    """Sends a request to the server that owns the key."""

    def ask(addr):
        host, port = addr.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=5)
        try:
            connection.request(method, "/" + urllib.parse.quote(name, safe=""), value)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            return None  # not reachable: find the owner again
        finally:
            connection.close()
        return None if answer.status == NOT_OWNER else (addr, body)

    addr, body = AGENT.lookup(NAMESPACE).do(name, ask)
    print(f"{name} = {body.decode()} (at {addr})", flush=True)


def losses():
    for loss in AGENT.lookup(NAMESPACE).losses():
        print("lost", loss["start"], loss["limit"], loss["owner"], loss["cause"], flush=True)


COMMANDS = {
    ("serve", 1): serve,
    ("put", 2): lambda name, value: call("PUT", name, value.encode()),
    ("get", 1): lambda name: call("GET", name),
    ("losses", 0): losses,
}


def main(command="", *args):
    global AGENT
    run = COMMANDS.get((command, len(args)))
    if run is None:
        sys.exit(__doc__)
    AGENT = leasehold.Agent(os.environ.get("AGENT", "http://127.0.0.1:7404"))
    AGENT.call("GET", "/v1/status")  # fails without an agent; later the agent may be restarted
    run(*args)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (leasehold.Error, OSError) as e:
        sys.exit(f"kv: {e}")
    except KeyboardInterrupt:
        sys.exit(130)
