package memnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"

	"github.com/leasehold-dev/leasehold/internal/testkit/memnet"
)

// A pair is two hosts with a connection between them.
type pair struct {
	net      *memnet.Net
	a, b     *memnet.Host
	listener net.Listener
	at, to   net.Conn // at a, and at b
}

func connected(t *testing.T, latency time.Duration) *pair {
	t.Helper()
	n := memnet.New(latency)
	p := &pair{net: n, a: n.Host("a"), b: n.Host("b")}
	var err error
	if p.listener, err = p.b.Listen(80); err != nil {
		t.Fatal(err)
	}
	if p.at, err = p.a.Dial(t.Context(), "b:80"); err != nil {
		t.Fatal(err)
	}
	if p.to, err = p.listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Connections pass the standard tests of package nettest.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		p := connected(t, 0)
		return p.at, p.to, func() { p.a.Kill(); p.b.Kill() }, nil
	})
}

func read(t *testing.T, c net.Conn, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	if _, err := io.ReadFull(c, data); err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, c net.Conn, data string) {
	t.Helper()
	if n, err := c.Write([]byte(data)); n != len(data) || err != nil {
		t.Fatal(n, err)
	}
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 3*time.Millisecond)
		began := time.Now()
		write(t, p.at, "hello")
		if got := read(t, p.to, 5); string(got) != "hello" || time.Since(began) != 3*time.Millisecond {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		if p.at.RemoteAddr().String() != "b:80" || p.to.LocalAddr().String() != "b:80" || p.to.RemoteAddr().String() != p.at.LocalAddr().String() {
			t.Error(p.at.RemoteAddr(), p.to.LocalAddr(), p.to.RemoteAddr(), p.at.LocalAddr())
		}
	})
}

// A cut or a frozen reader delays data and the end of the stream.
func TestCutAndFreezeDelayData(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(*pair) }{
		"cut":    {func(p *pair) { p.net.Cut("b", "a") }, func(p *pair) { p.net.Heal("a", "b") }},
		"freeze": {func(p *pair) { p.b.Freeze() }, func(p *pair) { p.b.Thaw() }},
		"all":    {func(p *pair) { p.net.Cut("a", "b") }, func(p *pair) { p.net.HealAll("b") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := connected(t, 0)
				fault.begin(p)
				write(t, p.at, "hello")
				_ = p.at.Close()
				_ = p.to.SetReadDeadline(time.Now().Add(time.Hour))
				if n, err := p.to.Read(make([]byte, 5)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%d bytes, %v", n, err)
				}
				_ = p.to.SetReadDeadline(time.Time{})
				got := make(chan []byte)
				go func() {
					all, err := io.ReadAll(p.to)
					if err != nil {
						t.Error(err)
					}
					got <- all
				}()
				synctest.Wait()
				fault.end(p)
				if all := <-got; !bytes.Equal(all, []byte("hello")) {
					t.Errorf("got %q", all)
				}
			})
		})
	}
}

// A frozen host neither writes data nor ends streams.
func TestFrozenWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 0)
		p.a.Freeze()
		_ = p.at.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := p.at.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d, %v", n, err)
		}
		_ = p.at.Close()
		_ = p.to.SetDeadline(time.Now().Add(time.Second))
		if _, err := p.to.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		_ = p.to.SetDeadline(time.Time{})
		p.a.Thaw()
		if _, err := p.to.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	})
}

func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 0)
		write(t, p.to, "never read")
		p.b.Kill()
		if _, err := p.at.Read(make([]byte, 5)); !errors.Is(err, syscall.ECONNRESET) {
			t.Error("reading:", err)
		}
		if _, err := p.at.Write([]byte("hello")); !errors.Is(err, syscall.EPIPE) {
			t.Error("writing:", err)
		}
		if _, err := p.to.Write([]byte("hello")); !errors.Is(err, net.ErrClosed) {
			t.Error("write of a killed host:", err)
		}
		if _, err := p.listener.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error("accept of a killed host:", err)
		}
		if _, err := p.b.Listen(81); err == nil {
			t.Error("a killed host listens")
		}
		if _, err := p.a.Dial(t.Context(), "b:80"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error("dial to a killed host:", err)
		}
		if _, err := p.b.Dial(t.Context(), "a:80"); err == nil {
			t.Error("a killed host dials")
		}
		if p.net.Host("b") == p.b || p.net.Host("a") != p.a {
			t.Error("Host replaces killed hosts only")
		}
	})
}

// A cut delays the resets of a killed host.
func TestCutDelaysReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 0)
		p.net.Cut("a", "b")
		p.b.Freeze() // killing a frozen host works, too
		p.b.Kill()
		_ = p.at.SetDeadline(time.Now().Add(time.Hour))
		if _, err := p.at.Read(make([]byte, 5)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		_ = p.at.SetDeadline(time.Time{})
		p.net.Heal("a", "b")
		if _, err := p.at.Read(make([]byte, 5)); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	})
}

func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		a, b := n.Host("a"), n.Host("b")
		for _, address := range []string{"b:80", "c:80", "b", "b:http"} {
			if _, err := a.Dial(t.Context(), address); err == nil {
				t.Errorf("%s: connected", address)
			}
		}
		l, err := b.Listen(0)
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().String()
		n.Cut("a", "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := a.Dial(ctx, at); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("across a cut: %v", err)
		}
		dialled := make(chan error, 1)
		go func() {
			_, err := a.Dial(t.Context(), at)
			dialled <- err
		}()
		synctest.Wait()
		n.Heal("b", "a")
		if err := <-dialled; err != nil {
			t.Error(err)
		}
		if _, err := b.Listen(70000); err == nil {
			t.Error("port 70000")
		}
		_ = l.Close()
		if _, err := a.Dial(t.Context(), at); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
	})
}
