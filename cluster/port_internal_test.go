package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/credentials/local"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/owner"
)

func newTestPort(t *testing.T) *port {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newPort(listener)
	t.Cleanup(p.close)
	return p
}

func connect(t *testing.T, p *port, send string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, send); err != nil {
		t.Fatal(err)
	}
	return conn
}

// The first bytes of a connection select its server, which receives them, except for the preface of a transfer.
func TestProtocols(t *testing.T) {
	p := newTestPort(t)
	for name, c := range map[string]struct {
		inlet      *inlet
		send, want string
	}{
		"gRPC":     {p.calls, "PRI * HTTP/2.0", "PRI * HTTP/2.0"},
		"TLS":      {p.calls, "\x16\x03\x01\x00rest", "\x16\x03\x01\x00rest"},
		"transfer": {p.moves, movePreface + "PRI * HTTP/2.0", "PRI * HTTP/2.0"},
		"HTTP":     {p.pages, "GET / HTTP/1.1", "GET / HTTP/1.1"},
		"POST":     {p.pages, "POST / HTTP/1.1", "POST / HTTP/1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			_ = connect(t, p, c.send)
			conn, err := c.inlet.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // a test
			got := make([]byte, len(c.want))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != c.want {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// A connection whose server has ended is closed; the port stays open.
func TestClosedInlet(t *testing.T) {
	p := newTestPort(t)
	_ = p.calls.Close()
	if _, err := io.ReadAll(connect(t, p, "PRI * HTTP/2.0")); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	if _, err := p.calls.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := net.Listen("tcp", p.listener.Addr().String()); err == nil {
		t.Error("another process can have the address of this one")
	}
	moves := p.reopenMoves()
	_ = connect(t, p, movePreface)
	conn, err := moves.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// Connections that send nothing are bounded: a new one replaces the oldest.
func TestSilentConnections(t *testing.T) {
	p := newTestPort(t)
	oldest, far := net.Pipe()
	defer far.Close() //nolint:errcheck // a test
	p.hold(oldest)
	for range maxPending {
		conn, other := net.Pipe()
		t.Cleanup(func() { _ = other.Close() })
		p.hold(conn)
	}
	if n := p.pending.Len(); n != maxPending {
		t.Errorf("%d pending connections, want %d", n, maxPending)
	}
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest is still open: %v", err)
	}
}

// Connections that wait for their server are bounded too: a new one replaces the oldest, although all have sent their
// first bytes.
func TestUnacceptedConnections(t *testing.T) {
	p := newTestPort(t)
	var first net.Conn
	for range maxPending + 1 {
		conn, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		if first == nil {
			first = far
		}
		element := p.hold(conn)
		p.running.Go(func() { p.route(conn, element) })
		if _, err := io.WriteString(far, movePreface); err != nil {
			t.Fatal(err)
		}
	}
	_ = first.SetReadDeadline(time.Now().Add(prefaceTimeout / 2))
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest of %d connections is still open: %v", maxPending+1, err)
	}
}

func TestMembers(t *testing.T) {
	names := []string{"p-10:1", "p-2:1", "p-1:1", "p-9:1", "p-3:1", "p-8:1", "p-4:1", "p-7:1", "p-5:1", "p-6:1", "p-2:1"}
	c := Config{Self: "p-10:1", Peers: List(names...), Size: 10}
	all, err := c.members(t.Context())
	if err != nil || all[0] != "p-1:1" || all[9] != "p-10:1" {
		t.Errorf("%v, %v", all, err)
	}
	if v := voters(all); len(v) != 9 || slices.Contains(v, "p-10:1") {
		t.Errorf("voters %v", v)
	}
	c.Size = 11
	if _, err := c.members(t.Context()); err == nil {
		t.Error("an incomplete list is used")
	}
	c.Size, c.Self = 10, "q:1"
	if _, err := c.members(t.Context()); err == nil {
		t.Error("a server that is not listed joins")
	}
}

// Names that are found later are waited for, and looked up once a second.
func TestAwaitMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, begun := 0, time.Now()
		c := Config{Namespace: "n", Self: "a:1", Size: 3, Peers: Func(func(context.Context) ([]string, error) {
			calls++
			return [][]string{nil, {"a:1"}, {"a:1", "b:1", "c:1", "d:1"}, {"a:1", "b:1", "c:1"}}[min(calls-1, 3)], map[bool]error{true: errors.New("no DNS")}[calls == 1]
		})}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
		all, err := c.awaitMembers(t.Context())
		if err != nil || len(all) != 3 || calls != 4 || time.Since(begun) != 3*time.Second {
			t.Errorf("%v, %v after %d calls in %v", all, err, calls, time.Since(begun))
		}
	})
}

func TestInvalid(t *testing.T) {
	valid := func() Config {
		return Config{Namespace: "n", Self: "127.0.0.1:1", Peers: List("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")}
	}
	good := valid()
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no namespace":         func(c *Config) { c.Namespace = "" },
		"no self":              func(c *Config) { c.Self = "" },
		"no peers":             func(c *Config) { c.Peers = Peers{} },
		"two peers":            func(c *Config) { c.Peers = List("127.0.0.1:1", "127.0.0.1:2") },
		"other size":           func(c *Config) { c.Size = 4 },
		"no size":              func(c *Config) { c.Peers = DNS("localhost:1") },
		"DNS without a port":   func(c *Config) { c.Peers, c.Size = DNS("localhost"), 3 },
		"SRV of no service":    func(c *Config) { c.Peers, c.Size = SRV("presence.example.org"), 3 },
		"leases too long":      func(c *Config) { c.Settings.Lease = admin.Seconds(time.Hour) },
		"other credentials":    func(c *Config) { c.ServerCredentials = local.NewCredentials() },
		"promises":             func(c *Config) { c.Owner.MaxPromise = 1 },
		"two states":           func(c *Config) { c.State = noState{}; c.Owner.Mover = &owner.Mover{Export: noExport} },
		"route alone":          func(c *Config) { c.Route = leasehttp.PathSegment(1) },
		"self is not a member": func(c *Config) { c.Self = "127.0.0.1:4" },
		"network in plaintext": func(c *Config) {
			c.Self, c.Listen, c.Peers = "10.0.0.1:1", "127.0.0.1:0", List("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := valid()
			change(&cfg)
			if _, err := Join(t.Context(), cfg); !errors.Is(err, leasehold.ErrInvalid) {
				t.Error(err)
			}
		})
	}
}

type noState struct{ State }

func noExport(context.Context, *owner.Export) error { return nil }
