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

// A door is a listener in memory whose connections come from where a test says.
type door struct {
	come   chan net.Conn
	fail   chan error
	closed chan struct{}
	once   sync.Once
}

func newDoor() *door {
	return &door{come: make(chan net.Conn), fail: make(chan error), closed: make(chan struct{})}
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.come:
		return c, nil
	case err := <-d.fail:
		return nil, err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *door) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *door) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// from is a connection that says where it is from.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// connect returns the client's end of a connection from a host.
func (d *door) connect(host string) net.Conn {
	near, far := net.Pipe()
	d.come <- from{far, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), 1000))}
	synctest.Wait() // for the gate to have it
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

// accept has a server accept for ever, which lets in whoever comes.
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

func run(t *testing.T, cfg Config, test func(t *testing.T, d *door, l *Listener)) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		l := New(d, cfg)
		defer l.Close() //nolint:errcheck // it never fails
		test(t, d, l)
	})
}

// Whoever says nothing is not accepted, keeps nobody else waiting, and has Wait.
func TestSilence(t *testing.T) {
	run(t, Config{}, func(t *testing.T, d *door, l *Listener) {
		silent := d.connect("10.0.0.1")
		speaker := d.connect("10.0.0.2")
		go func() { _, _ = speaker.Write([]byte("hello")) }()
		c, err := l.Accept()
		if err != nil || c.RemoteAddr().String() != "10.0.0.2:1000" {
			t.Fatalf("accepted %v, %v", c, err)
		}
		introduce(c)
		time.Sleep(usualWait - time.Millisecond)
		if synctest.Wait(); closed(t, silent) {
			t.Error("it is closed before its time")
		}
		time.Sleep(time.Millisecond)
		if synctest.Wait(); !closed(t, silent) {
			t.Error("it is not closed")
		}
		said := make([]byte, 5)
		if n, err := io.ReadFull(c, said); err != nil {
			t.Errorf("who has introduced itself: %q, %v", said[:n], err)
		}
		if diff := cmp.Diff("hello", string(said)); diff != "" {
			t.Error(diff)
		}
		if l.open != 1 || l.waiting.Len() != 0 || len(l.hosts) != 1 {
			t.Errorf("%d are open, %d wait, %d hosts", l.open, l.waiting.Len(), len(l.hosts))
		}
	})
}

// A byte now and then does not extend the time, and neither do deadlines of the server.
func TestSlowness(t *testing.T) {
	run(t, Config{}, func(t *testing.T, d *door, l *Listener) {
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
		if took := time.Since(began); took != usualWait || n < 40 {
			t.Errorf("it is over after %v and %d bytes: %v", took, n, err)
		}
	})
}

// If too many wait, the oldest goes, and the newest come through.
func TestOldestGoesFirst(t *testing.T) {
	run(t, Config{Waiting: 2}, func(t *testing.T, d *door, l *Listener) {
		a, b := d.connect("10.0.0.1"), d.connect("10.0.0.1")
		c := d.connect("10.0.0.1")
		if synctest.Wait(); !closed(t, a) || closed(t, b) || closed(t, c) {
			t.Error("the oldest is not the one that is closed")
		}
		if l.open != 2 {
			t.Errorf("%d are open", l.open)
		}
	})
}

// In all there are Conns: one that has not introduced itself makes room, and if there is
// none the new one is closed at once.
func TestConns(t *testing.T) {
	run(t, Config{Conns: 2}, func(t *testing.T, d *door, l *Listener) {
		accepted := accept(l)
		known := d.connect("10.0.0.1")
		go func() { _, _ = known.Write([]byte("x")) }()
		place := <-accepted
		introduce(place)
		silent := d.connect("10.0.0.2")
		next := d.connect("10.0.0.3")
		if synctest.Wait(); !closed(t, silent) || closed(t, known) || closed(t, next) {
			t.Error("it is not the silent one that makes room")
		}
		go func() { _, _ = next.Write([]byte("x")) }()
		introduce(<-accepted)
		late := d.connect("10.0.0.4")
		if synctest.Wait(); !closed(t, late) || closed(t, known) || closed(t, next) {
			t.Error("it is not the last one that has no room")
		}
		if err := place.Close(); err != nil {
			t.Fatal(err)
		}
		if again := d.connect("10.0.0.5"); closed(t, again) {
			t.Error("who closes does not make room")
		}
	})
}

// One host has only so many, but this computer does, and one network of IPv6 is a host.
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
			run(t, Config{PerHost: 1}, func(t *testing.T, d *door, _ *Listener) {
				first, second := d.connect(test.first), d.connect(test.second)
				if synctest.Wait(); closed(t, first) || closed(t, second) != test.refused {
					t.Errorf("first closed: %v, second: %v", closed(t, first), closed(t, second))
				}
			})
		})
	}
}

// A process that has no file descriptor left drops those who wait, and goes on.
func TestOutOfFiles(t *testing.T) {
	run(t, Config{}, func(t *testing.T, d *door, l *Listener) {
		accepted := accept(l)
		silent := d.connect("10.0.0.1")
		d.fail <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		if synctest.Wait(); !closed(t, silent) {
			t.Error("who waits is not dropped")
		}
		time.Sleep(time.Second)
		next := d.connect("10.0.0.2")
		go func() { _, _ = next.Write([]byte("x")) }()
		if c := <-accepted; c.RemoteAddr().String() != "10.0.0.2:1000" {
			t.Errorf("accepted %v", c.RemoteAddr())
		}
	})
}

// Why a listener fails is told to whoever accepts.
func TestFailure(t *testing.T) {
	run(t, Config{}, func(t *testing.T, d *door, l *Listener) {
		silent, broken := d.connect("10.0.0.1"), errors.New("broken")
		d.fail <- broken
		if _, err := l.Accept(); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		if synctest.Wait(); !closed(t, silent) {
			t.Error("who waits is not dropped")
		}
	})
}

// Close ends whoever has not introduced itself, and leaves the others to the server.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		l := New(d, Config{})
		accepted := accept(l)
		silent, speaks, known := d.connect("10.0.0.1"), d.connect("10.0.0.2"), d.connect("10.0.0.3")
		go func() { _, _ = speaks.Write([]byte("x")) }()
		<-accepted
		go func() { _, _ = known.Write([]byte("x")) }()
		introduce(<-accepted)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
		if synctest.Wait(); !closed(t, silent) || !closed(t, speaks) || closed(t, known) {
			t.Errorf("silent closed: %v, in the middle: %v, known: %v", closed(t, silent), closed(t, speaks), closed(t, known))
		}
	})
}

// The log hears of many at once, and not of each.
func TestReports(t *testing.T) {
	var log strings.Builder
	quiet := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.MessageKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}
	cfg := Config{Waiting: 1, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: quiet}))}
	run(t, cfg, func(t *testing.T, d *door, _ *Listener) {
		for range 4 {
			d.connect("10.0.0.1")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		const want = `address=127.0.0.1:1 late=0 "oldest of too many"=1 "no room"=0 "too many of one host"=0 "too many of one identity"=0 "too fast"=0 "refused too often"=0 open=1 waiting=1
address=127.0.0.1:1 late=1 "oldest of too many"=2 "no room"=0 "too many of one host"=0 "too many of one identity"=0 "too fast"=0 "refused too often"=0 open=0 waiting=0
`
		if diff := cmp.Diff(want, log.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// Every connection that is dropped is counted, by reason.
func TestDropped(t *testing.T) {
	counted := make(map[Reason]int) // the lock of the listener is held
	cfg := Config{Waiting: 2, Conns: 3, PerHost: 2, Dropped: func(why Reason) { counted[why]++ }}
	run(t, cfg, func(t *testing.T, d *door, l *Listener) {
		for range 3 {
			d.connect("10.0.0.1") // one too many of a host
		}
		d.connect("10.0.0.2") // one too many that wait
		synctest.Wait()
		time.Sleep(time.Minute) // two are late
		for _, host := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.5"} {
			c := d.connect(host)
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			accepted, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			introduce(accepted)
		}
		d.connect("10.0.0.6") // one too many
		synctest.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if diff := cmp.Diff(map[Reason]int{Host: 1, Crowded: 1, Late: 2, Full: 1}, counted); diff != "" {
			t.Error(diff)
		}
	})
}
