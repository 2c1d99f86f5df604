package connlimit

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A fakeListener is a listener in memory. The test chooses the remote addresses of its connections.
type fakeListener struct {
	conns  chan net.Conn
	fail   chan error
	closed chan struct{}
	once   sync.Once
}

func newFakeListener() *fakeListener {
	return &fakeListener{conns: make(chan net.Conn), fail: make(chan error), closed: make(chan struct{})}
}

func (d *fakeListener) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case err := <-d.fail:
		return nil, err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *fakeListener) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *fakeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// from is a connection with a remote address.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// connect returns the client's end of a connection from a host.
func (d *fakeListener) connect(host string) net.Conn {
	near, far := net.Pipe()
	d.conns <- from{far, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), 1000))}
	synctest.Wait() // for the listener to accept it
	return near
}

// closed reports whether the other side has closed a connection.
func closed(t *testing.T, c net.Conn) bool {
	t.Helper()
	switch err := c.SetReadDeadline(time.Now().Add(time.Nanosecond)); {
	case errors.Is(err, io.ErrClosedPipe):
		return true
	case err != nil:
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// accept accepts connections until the listener is closed.
func accept(l *Listener) <-chan net.Conn {
	accepted := make(chan net.Conn, 100)
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	return accepted
}

func run(t *testing.T, cfg Config, test func(t *testing.T, d *fakeListener, l *Listener)) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		l := New(d, cfg)
		defer l.Close() //nolint:errcheck // it never fails
		test(t, d, l)
	})
}

// A connection without data is not accepted, does not delay others, and expires.
func TestSilence(t *testing.T) {
	run(t, Config{}, func(t *testing.T, d *fakeListener, l *Listener) {
		silent := d.connect("10.0.0.1")
		active := d.connect("10.0.0.2")
		go func() { _, _ = active.Write([]byte("hello")) }()
		c, err := l.Accept()
		if err != nil || c.RemoteAddr().String() != "10.0.0.2:1000" {
			t.Fatalf("accepted %v, %v", c, err)
		}
		establish(c)
		time.Sleep(defaultTimeout - time.Millisecond)
		if synctest.Wait(); closed(t, silent) {
			t.Error("the silent connection is closed before its timeout")
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); !closed(t, silent) {
			t.Error("the silent connection is open after its timeout")
		}
		data := make([]byte, 5)
		if n, err := io.ReadFull(c, data); err != nil {
			t.Errorf("established connection: %q, %v", data[:n], err)
		}
		if diff := cmp.Diff("hello", string(data)); diff != "" {
			t.Error(diff)
		}
		if l.conns != 1 || l.pending.Len() != 0 || len(l.hosts) != 1 {
			t.Errorf("%d connections, %d pending, %d hosts", l.conns, l.pending.Len(), len(l.hosts))
		}
	})
}

// Neither slow data nor deadlines of the server extend the handshake timeout.
func TestSlowHandshakeExpires(t *testing.T) {
	run(t, Config{}, func(t *testing.T, d *fakeListener, l *Listener) {
		slow := d.connect("10.0.0.1")
		began := time.Now()
		var writing sync.WaitGroup
		defer writing.Wait()
		writing.Go(func() {
			for {
				if _, err := slow.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, c)
		if took := time.Since(began); took != defaultTimeout || n < 40 {
			t.Errorf("ended after %v and %d bytes: %v", took, n, err)
		}
	})
}

// At the limit of pending connections the oldest is closed.
func TestOldestGoesFirst(t *testing.T) {
	run(t, Config{MaxPending: 2}, func(t *testing.T, d *fakeListener, l *Listener) {
		a, b := d.connect("10.0.0.1"), d.connect("10.0.0.1")
		c := d.connect("10.0.0.1")
		if synctest.Wait(); !closed(t, a) || closed(t, b) || closed(t, c) {
			t.Error("the closed connection is not the oldest")
		}
		if l.conns != 2 {
			t.Errorf("%d connections", l.conns)
		}
	})
}

// At the limit of connections a pending one is closed, and if there is none the new one.
func TestConnectionLimit(t *testing.T) {
	run(t, Config{Conns: 2}, func(t *testing.T, d *fakeListener, l *Listener) {
		accepted := accept(l)
		established := d.connect("10.0.0.1")
		go func() { _, _ = established.Write([]byte("x")) }()
		first := <-accepted
		establish(first)
		silent := d.connect("10.0.0.2")
		next := d.connect("10.0.0.3")
		if synctest.Wait(); !closed(t, silent) || closed(t, established) || closed(t, next) {
			t.Error("the closed connection is not the silent one")
		}
		go func() { _, _ = next.Write([]byte("x")) }()
		establish(<-accepted)
		late := d.connect("10.0.0.4")
		if synctest.Wait(); !closed(t, late) || closed(t, established) || closed(t, next) {
			t.Error("the closed connection is not the last one")
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if again := d.connect("10.0.0.5"); closed(t, again) {
			t.Error("a closed connection makes no room")
		}
	})
}

// One IPv4 address or IPv6 /64 network is one host. Loopback addresses have no limit.
func TestPerHost(t *testing.T) {
	for _, test := range []struct {
		name, first, second string
		refused             bool
	}{
		{"the same", "10.0.0.1", "10.0.0.1", true},
		{"another", "10.0.0.1", "10.0.0.2", false},
		{"the loopback", "127.0.0.1", "127.0.0.1", false},
		{"the loopback of IPv6", "::1", "::1", false},
		{"the same, written as IPv6", "10.0.0.1", "::ffff:10.0.0.1", true},
		{"the same network of IPv6", "2001:db8::1", "2001:db8::ffff:1", true},
		{"another network of IPv6", "2001:db8::1", "2001:db8:0:1::1", false},
		{"the same link", "fe80::1%eth0", "fe80::2%eth0", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, Config{PerHost: 1}, func(t *testing.T, d *fakeListener, _ *Listener) {
				first, second := d.connect(test.first), d.connect(test.second)
				if synctest.Wait(); closed(t, first) || closed(t, second) != test.refused {
					t.Errorf("first closed: %v, second: %v", closed(t, first), closed(t, second))
				}
			})
		})
	}
}

// Without file descriptors the listener drops pending connections and retries.
func TestAcceptRetriesWithoutDescriptors(t *testing.T) {
	run(t, Config{}, func(t *testing.T, d *fakeListener, l *Listener) {
		accepted := accept(l)
		silent := d.connect("10.0.0.1")
		d.fail <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		if synctest.Wait(); !closed(t, silent) {
			t.Error("the pending connection is open")
		}
		time.Sleep(time.Second)
		next := d.connect("10.0.0.2")
		go func() { _, _ = next.Write([]byte("x")) }()
		if c := <-accepted; c.RemoteAddr().String() != "10.0.0.2:1000" {
			t.Errorf("accepted %v", c.RemoteAddr())
		}
	})
}

// Accept returns the error of the inner listener.
func TestAcceptReturnsListenerError(t *testing.T) {
	run(t, Config{}, func(t *testing.T, d *fakeListener, l *Listener) {
		silent, broken := d.connect("10.0.0.1"), errors.New("broken")
		d.fail <- broken
		if _, err := l.Accept(); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		if synctest.Wait(); !closed(t, silent) {
			t.Error("the pending connection is open")
		}
	})
}

// Close closes pending connections; established ones stay open.
func TestCloseClosesPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeListener()
		l := New(d, Config{})
		accepted := accept(l)
		silent, readable, established := d.connect("10.0.0.1"), d.connect("10.0.0.2"), d.connect("10.0.0.3")
		go func() { _, _ = readable.Write([]byte("x")) }()
		<-accepted
		go func() { _, _ = established.Write([]byte("x")) }()
		establish(<-accepted)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
		if synctest.Wait(); !closed(t, silent) || !closed(t, readable) || closed(t, established) {
			t.Errorf("silent closed: %v, readable: %v, established: %v", closed(t, silent), closed(t, readable), closed(t, established))
		}
	})
}

// The log has one line per interval, not one per connection.
func TestReportsAreThrottled(t *testing.T) {
	var log strings.Builder
	quiet := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.MessageKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}
	cfg := Config{MaxPending: 1, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: quiet}))}
	run(t, cfg, func(t *testing.T, d *fakeListener, _ *Listener) {
		for range 4 {
			d.connect("10.0.0.1")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		const want = `address=127.0.0.1:1 late=0 crowded=1 full=0 host=0 identity=0 pace=0 refusals=0 open=1 pending=1
address=127.0.0.1:1 late=1 crowded=2 full=0 host=0 identity=0 pace=0 refusals=0 open=0 pending=0
`
		if diff := cmp.Diff(want, log.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// Dropped connections are counted by reason.
func TestDroppedCounts(t *testing.T) {
	counted := make(map[Reason]int) // guarded by the listener's mutex
	cfg := Config{MaxPending: 2, Conns: 3, PerHost: 2, Dropped: func(why Reason) { counted[why]++ }}
	run(t, cfg, func(t *testing.T, d *fakeListener, l *Listener) {
		for range 3 {
			d.connect("10.0.0.1") // above the limit of the host
		}
		d.connect("10.0.0.2") // above the limit of pending connections
		synctest.Wait()
		time.Sleep(time.Minute) // two expire
		for _, host := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.5"} {
			c := d.connect(host)
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			establish(accepted)
		}
		d.connect("10.0.0.6") // above the limit of connections
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if diff := cmp.Diff(map[Reason]int{Host: 1, Crowded: 1, Late: 2, Full: 1}, counted); diff != "" {
			t.Error(diff)
		}
	})
}
