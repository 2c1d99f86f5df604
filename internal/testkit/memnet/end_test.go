package memnet_test

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/memnet"
)

func closeWrite(p *pair) { _ = p.at.(interface{ CloseWrite() error }).CloseWrite() }

// TestNewsOfAnEnd takes as long as anything else does, and nobody knows before.
func TestNewsOfAnEnd(t *testing.T) {
	const latency = 3 * time.Millisecond
	for name, test := range map[string]struct {
		end         func(p *pair)
		known       bool  // that nothing more comes, before
		read, write error // what the other side meets
	}{
		"close":       {func(p *pair) { _ = p.at.Close() }, false, io.EOF, syscall.EPIPE},
		"close write": {closeWrite, false, io.EOF, nil},
		"kill":        {func(p *pair) { p.a.Kill() }, false, syscall.ECONNRESET, syscall.EPIPE},
		"close twice": {func(p *pair) {
			_ = p.at.Close()
			time.AfterFunc(time.Millisecond, func() { _ = p.at.Close() })
		}, false, io.EOF, syscall.EPIPE},
		"close, after all was said": {func(p *pair) {
			closeWrite(p)
			time.Sleep(latency)
			_ = p.at.Close()
		}, true, io.EOF, syscall.EPIPE},
		"kill, after all was said": {func(p *pair) {
			closeWrite(p)
			time.Sleep(time.Millisecond)
			p.a.Kill()
		}, false, syscall.ECONNRESET, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := connected(t, latency)
				test.end(p)
				ended := time.Now()
				write(t, p.to, "goes nowhere")
				time.Sleep(latency - 1)
				write(t, p.to, "goes nowhere")
				if _, err := p.to.Read(make([]byte, 1)); !errors.Is(err, test.read) {
					t.Errorf("reading: %v, want %v", err, test.read)
				}
				if known := time.Since(ended) != latency; known != test.known {
					t.Errorf("reading ends after %v", time.Since(ended))
				}
				time.Sleep(time.Until(ended.Add(latency)))
				if _, err := p.to.Write([]byte("x")); !errors.Is(err, test.write) {
					t.Errorf("writing: %v, want %v", err, test.write)
				}
			})
		})
	}
}

// TestEndComesLast: what was written before comes before, each at its time.
func TestEndComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 3*time.Millisecond)
		began := time.Now()
		write(t, p.at, "x")
		time.Sleep(time.Millisecond)
		_ = p.at.Close()
		if got := read(t, p.to, 1); string(got) != "x" || time.Since(began) != 3*time.Millisecond {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		if _, err := p.to.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(began) != 4*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestWriterHearsOfAnEnd while it waits for room.
func TestWriterHearsOfAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 3*time.Millisecond)
		began := time.Now()
		time.AfterFunc(time.Millisecond, func() { _ = p.to.Close() })
		if _, err := p.at.Write(make([]byte, 1<<20)); !errors.Is(err, syscall.EPIPE) || time.Since(began) != 4*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestWritingAcrossACut: a writer hears of a death as little as a reader does.
func TestWritingAcrossACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 0)
		p.net.Cut("a", "b")
		p.b.Kill()
		write(t, p.at, "nobody is there")
		_ = p.at.SetDeadline(time.Now().Add(time.Hour))
		if _, err := p.at.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("more than the window:", err)
		}
		_ = p.at.SetDeadline(time.Time{})
		p.net.Heal("a", "b")
		if _, err := p.at.Write([]byte("hello")); !errors.Is(err, syscall.EPIPE) {
			t.Error("healed:", err)
		}
	})
}

// TestFrozenToDeath: a frozen host that is killed is dead, and keeps nobody waiting.
func TestFrozenToDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 0)
		p.b.Freeze()
		p.b.Kill()
		_ = p.at.SetDeadline(time.Now().Add(time.Hour))
		if _, err := p.at.Read(make([]byte, 5)); !errors.Is(err, syscall.ECONNRESET) {
			t.Error("reading:", err)
		}
		if _, err := p.at.Write([]byte("hello")); !errors.Is(err, syscall.EPIPE) {
			t.Error("writing:", err)
		}
	})
}

// TestNeverAccepted: who waits to be accepted hears that nobody will.
func TestNeverAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New(0)
		l, err := n.Host("b").Listen(80)
		if err != nil {
			t.Fatal(err)
		}
		c, err := n.Host("a").Dial(t.Context(), "b:80")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		_ = c.SetDeadline(time.Now().Add(time.Hour))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	})
}

// TestFrozenAccept: a frozen host accepts nobody until it goes on, though one can
// connect to it, as to a process that was stopped.
func TestFrozenAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 0)
		p.b.Freeze()
		if _, err := p.a.Dial(t.Context(), "b:80"); err != nil {
			t.Fatal(err)
		}
		accepted := make(chan net.Conn, 1)
		go func() {
			defer close(accepted)
			c, err := p.listener.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			accepted <- c
		}()
		time.Sleep(time.Hour)
		if len(accepted) > 0 {
			t.Error("a frozen host has accepted a connection")
		}
		p.b.Thaw()
		if c := <-accepted; c == nil {
			t.Error("and goes on without one")
		}
	})
}
