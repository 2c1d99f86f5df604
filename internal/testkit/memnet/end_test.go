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

// The end of a connection becomes visible to the peer after the latency.
func TestEndHasLatency(t *testing.T) {
	const latency = 3 * time.Millisecond
	for name, test := range map[string]struct {
		end         func(p *pair)
		known       bool  // the reader has seen the end before
		read, write error // errors at the peer
	}{
		"close":       {func(p *pair) { _ = p.at.Close() }, false, io.EOF, syscall.EPIPE},
		"close write": {closeWrite, false, io.EOF, nil},
		"kill":        {func(p *pair) { p.a.Kill() }, false, syscall.ECONNRESET, syscall.EPIPE},
		"close twice": {func(p *pair) {
			_ = p.at.Close()
			time.AfterFunc(time.Millisecond, func() { _ = p.at.Close() })
		}, false, io.EOF, syscall.EPIPE},
		"close after close write": {func(p *pair) {
			closeWrite(p)
			time.Sleep(latency)
			_ = p.at.Close()
		}, true, io.EOF, syscall.EPIPE},
		"kill after close write": {func(p *pair) {
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
				write(t, p.to, "lost")
				time.Sleep(latency - 1)
				write(t, p.to, "lost")
				if _, err := p.to.Read(make([]byte, 1)); !errors.Is(err, test.read) {
					t.Errorf("read: %v, want %v", err, test.read)
				}
				if known := time.Since(ended) != latency; known != test.known {
					t.Errorf("read ended after %v", time.Since(ended))
				}
				time.Sleep(time.Until(ended.Add(latency)))
				if _, err := p.to.Write([]byte("x")); !errors.Is(err, test.write) {
					t.Errorf("write: %v, want %v", err, test.write)
				}
			})
		})
	}
}

// Data arrives before the end of the stream, each after the latency.
func TestEndIsAfterData(t *testing.T) {
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

// The end of the reader unblocks a writer with a full window.
func TestEndUnblocksWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 3*time.Millisecond)
		began := time.Now()
		time.AfterFunc(time.Millisecond, func() { _ = p.to.Close() })
		if _, err := p.at.Write(make([]byte, 1<<20)); !errors.Is(err, syscall.EPIPE) || time.Since(began) != 4*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A cut delays a reset for writers, too.
func TestCutDelaysResetForWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 0)
		p.net.Cut("a", "b")
		p.b.Kill()
		write(t, p.at, "into the cut")
		_ = p.at.SetDeadline(time.Now().Add(time.Hour))
		if _, err := p.at.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("beyond the window:", err)
		}
		_ = p.at.SetDeadline(time.Time{})
		p.net.Heal("a", "b")
		if _, err := p.at.Write([]byte("hello")); !errors.Is(err, syscall.EPIPE) {
			t.Error("healed:", err)
		}
	})
}

// Killing a frozen host resets its connections.
func TestKillFrozenHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connected(t, 0)
		p.b.Freeze()
		p.b.Kill()
		_ = p.at.SetDeadline(time.Now().Add(time.Hour))
		if _, err := p.at.Read(make([]byte, 5)); !errors.Is(err, syscall.ECONNRESET) {
			t.Error("read:", err)
		}
		if _, err := p.at.Write([]byte("hello")); !errors.Is(err, syscall.EPIPE) {
			t.Error("write:", err)
		}
	})
}

// Closing a listener resets connections that were not accepted.
func TestCloseResetsUnaccepted(t *testing.T) {
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

// A frozen host accepts no connections until Thaw, but dials to it succeed, as with a stopped process.
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
			t.Error("no connection accepted after Thaw")
		}
	})
}
