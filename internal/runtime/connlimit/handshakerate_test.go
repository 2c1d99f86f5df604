package connlimit

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// connectAndWrite returns the client's end of a connection from a host that has sent data.
func (d *fakeListener) connectAndWrite(host string) net.Conn {
	c := d.connect(host)
	go func() { _, _ = c.Write([]byte("hello")) }()
	synctest.Wait()
	return c
}

// Connections of one host above the rate wait, connections of other hosts pass, and a connection with too
// long a wait is closed at once.
func TestHandshakeRate(t *testing.T) {
	for _, host := range []string{"10.0.0.1", "127.0.0.1", "::1", "2001:db8::1"} {
		t.Run(host, func(t *testing.T) {
			dropped := make(map[Reason]int) // guarded by the listener's mutex
			run(t, Config{Pace: 10, HandshakeTimeout: 2 * time.Second, Dropped: func(why Reason) { dropped[why]++ }}, func(t *testing.T, d *fakeListener, l *Listener) {
				accepted := accept(l)
				var all []net.Conn
				for range 13 { // a burst of one, and ten in the maximum wait of a second
					all = append(all, d.connectAndWrite(host))
				}
				if n := len(accepted); n != 1 {
					t.Errorf("accepted at once: %d", n)
				}
				d.connectAndWrite("10.0.0.2")
				if n := len(accepted); n != 2 {
					t.Errorf("accepted with one of another host: %d", n)
				}
				for i, c := range all {
					if gone := closed(t, c); gone != (i > 10) {
						t.Errorf("connection %d closed: %v", i, gone)
					}
				}
				time.Sleep(100 * time.Millisecond)
				if closed(t, d.connectAndWrite(host)) {
					t.Error("dropped connections count in the rate")
				}
				time.Sleep(400 * time.Millisecond)
				synctest.Wait()
				if n := len(accepted); n != 7 {
					t.Errorf("accepted after half a second: %d", n)
				}
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if n := len(accepted); n != 12 {
					t.Errorf("accepted after a second: %d", n)
				}
				if dropped[Pace] != 2 || len(dropped) != 1 {
					t.Errorf("dropped: %v", dropped)
				}
			})
		})
	}
}

// Close does not wait for connections above the rate.
func TestCloseDuringHandshakeWait(t *testing.T) {
	run(t, Config{Pace: 1, HandshakeTimeout: time.Minute}, func(t *testing.T, d *fakeListener, l *Listener) {
		for range 3 {
			d.connectAndWrite("10.0.0.1")
		}
		begun := time.Now()
		if err := l.Close(); err != nil || time.Since(begun) > 0 {
			t.Errorf("closed after %v: %v", time.Since(begun), err)
		}
	})
}

// The number of limiters is bounded; limiters of idle hosts are removed.
func TestHostLimitersAreBounded(t *testing.T) {
	h := newHostLimiters(10)
	now := time.Now()
	for i := range maxHostLimiters {
		addr := &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("2001:db8:%x::1", i))}
		h.get(prefixOf(addr), now).AllowN(now, 1)
	}
	late := prefixOf(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)})
	if h.get(late, now) != h.shared || len(h.byHost) != maxHostLimiters {
		t.Errorf("%d limiters", len(h.byHost))
	}
	if h.get(late, now.Add(time.Second)) == h.shared || len(h.byHost) != 1 {
		t.Errorf("after a second %d limiters", len(h.byHost))
	}
}
