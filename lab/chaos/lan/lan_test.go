package lan

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// network creates a network with hosts, or skips the test if there can be none.
func network(t *testing.T, names ...string) (*Network, []*Host) {
	t.Helper()
	if err := Available(); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	n := New(1)
	t.Cleanup(n.Close)
	var hosts []*Host
	for _, name := range names {
		h, err := n.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	return n, hosts
}

// echo starts a server on a host that returns its input.
func echo(t *testing.T, h *Host) (addr string) {
	t.Helper()
	var l net.Listener
	err := h.Do(func() (err error) {
		l, err = net.Listen("tcp", h.At(0))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var answering sync.WaitGroup
	var mu sync.Mutex
	var all []net.Conn
	over := false
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		over = true
		for _, conn := range all { // an isolated server does not receive that the client has closed
			_ = conn.Close()
		}
		mu.Unlock()
		answering.Wait()
	})
	answering.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			if all = append(all, conn); over {
				_ = conn.Close()
			}
			mu.Unlock()
			answering.Go(func() {
				// Not with splice(2), whose pipes the runtime keeps.
				_, _ = io.Copy(conn, struct{ io.Reader }{conn})
				_ = conn.Close()
			})
		}
	})
	return l.Addr().String()
}

// patience is the timeout of expected events, and moment the wait for unexpected ones.
const (
	patience = 30 * time.Second
	moment   = 300 * time.Millisecond
)

func dial(t *testing.T, from *Host, addr string, within time.Duration) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	conn, err := from.Dial(ctx, "tcp", addr)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// exchange sends bytes and waits for their echo.
func exchange(conn net.Conn, size int, within time.Duration) error {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(make([]byte, size))
		sent <- err
	}()
	_, err := io.ReadFull(conn, make([]byte, size))
	return errors.Join(err, <-sent)
}

func TestHostsReachEachOther(t *testing.T) {
	n, hosts := network(t, "ann", "bob")
	addr := echo(t, hosts[1])
	conn, err := dial(t, hosts[0], addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(conn, 1<<20, patience); err != nil {
		t.Error(err)
	}
	if _, err := net.DialTimeout("tcp", addr, moment); err == nil {
		t.Error("the host is reachable from outside")
	}
	if c := n.Counts(); c.Passed == 0 || c.Dropped+c.Delayed+c.Duplicated > 0 {
		t.Errorf("counted %+v", c)
	}
}

// TestCuts: a cut in one direction prevents new connections and blocks existing ones, and healing it ends
// both.
func TestCuts(t *testing.T) {
	n, hosts := network(t, "ann", "bob", "cid")
	ann, bob, cid := hosts[0], hosts[1], hosts[2]
	addr := echo(t, bob)
	conn, err := dial(t, ann, addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]Way{
		"forward":  {From: []*Host{ann}, To: []*Host{bob}},
		"backward": {From: []*Host{bob}, To: []*Host{ann}},
		"outgoing": {From: []*Host{ann}},
		"incoming": {To: []*Host{ann}},
	} {
		heal := n.Strike(w, Trouble{Cut: true})
		if _, err := dial(t, ann, addr, moment); err == nil {
			t.Errorf("%s: connected", name)
		}
		if err := exchange(conn, 10, moment); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := dial(t, cid, addr, patience); err != nil {
			t.Errorf("%s: another cannot connect: %v", name, err)
		}
		heal()
		heal()
		if conn, err = dial(t, ann, addr, patience); err != nil {
			t.Fatalf("%s: healed, and %v", name, err)
		}
	}
}

// TestTroubles: TCP survives every trouble except a cut, and each trouble occurs.
func TestTroubles(t *testing.T) {
	for name, test := range map[string]struct {
		trouble Trouble
		size    int
		least   time.Duration
		seen    func(Counts) uint64
	}{
		"loss":      {Trouble{Loss: 0.1}, 1 << 18, 0, func(c Counts) uint64 { return c.Dropped }},
		"delay":     {Trouble{Delay: 50 * time.Millisecond}, 1, 100 * time.Millisecond, func(c Counts) uint64 { return c.Delayed }},
		"reorder":   {Trouble{Jitter: 20 * time.Millisecond}, 1 << 18, 0, func(c Counts) uint64 { return c.Delayed }},
		"duplicate": {Trouble{Duplicate: 0.5}, 1 << 18, 0, func(c Counts) uint64 { return c.Duplicated }},
		"rate":      {Trouble{Rate: 100_000}, 30_000, 300 * time.Millisecond, func(c Counts) uint64 { return c.Delayed }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, hosts := network(t, "ann", "bob")
			conn, err := dial(t, hosts[0], echo(t, hosts[1]), patience)
			if err != nil {
				t.Fatal(err)
			}
			defer n.Strike(Way{}, test.trouble)()
			begin := time.Now()
			if err := exchange(conn, test.size, patience); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took < test.least {
				t.Errorf("took %v, want at least %v", took, test.least)
			}
			if test.seen(n.Counts()) == 0 {
				t.Errorf("counted %+v", n.Counts())
			}
		})
	}
}
