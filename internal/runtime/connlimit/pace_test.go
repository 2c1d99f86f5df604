package connlimit

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// speak has somebody connect from a host and say something.
func (d *door) speak(host string) net.Conn {
	c := d.connect(host)
	go func() { _, _ = c.Write([]byte("hello")) }()
	synctest.Wait()
	return c
}

// Those of one host take turns, those of others come between them, and whose turn is too far
// away goes at once.
func TestPace(t *testing.T) {
	for _, host := range []string{"10.0.0.1", "127.0.0.1", "::1", "2001:db8::1"} {
		t.Run(host, func(t *testing.T) {
			dropped := make(map[Reason]int) // under the gate's lock, which nobody else takes by then
			run(t, Config{Pace: 10, Wait: 2 * time.Second, Dropped: func(why Reason) { dropped[why]++ }}, func(t *testing.T, d *door, l *Listener) {
				accepted := accept(l)
				var all []net.Conn
				for range 13 { // one at once, and ten in the second that they wait
					all = append(all, d.speak(host))
				}
				if n := len(accepted); n != 1 {
					t.Errorf("%d are let through at once", n)
				}
				d.speak("10.0.0.2")
				if n := len(accepted); n != 2 {
					t.Errorf("with one of another host %d are let through", n)
				}
				for i, c := range all {
					if gone := closed(t, c); gone != (i > 10) {
						t.Errorf("connection %d is closed: %v", i, gone)
					}
				}
				time.Sleep(100 * time.Millisecond)
				if closed(t, d.speak(host)) {
					t.Error("those who have gone take turns")
				}
				time.Sleep(400 * time.Millisecond)
				synctest.Wait()
				if n := len(accepted); n != 7 {
					t.Errorf("after half a second %d are let through", n)
				}
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				if n := len(accepted); n != 12 {
					t.Errorf("after a second %d are let through", n)
				}
				if dropped[Pace] != 2 || len(dropped) != 1 {
					t.Errorf("dropped are %v", dropped)
				}
			})
		})
	}
}

// Those that wait for their turn do not keep a gate from closing.
func TestPaceEnds(t *testing.T) {
	run(t, Config{Pace: 1, Wait: time.Minute}, func(t *testing.T, d *door, l *Listener) {
		for range 3 {
			d.speak("10.0.0.1")
		}
		begun := time.Now()
		if err := l.Close(); err != nil || time.Since(begun) > 0 {
			t.Errorf("it closes after %v: %v", time.Since(begun), err)
		}
	})
}

// However many hosts there are, no more than so many are remembered, and those who have not
// come for a while are forgotten first.
func TestPacesAreFew(t *testing.T) {
	p := newPaces(10)
	now := time.Now()
	for i := range maxPaces {
		addr := &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("2001:db8:%x::1", i))}
		p.get(prefixOf(addr), now).turn(now)
	}
	late := prefixOf(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)})
	if p.get(late, now) != p.others || len(p.of) != maxPaces {
		t.Errorf("%d are remembered", len(p.of))
	}
	if p.get(late, now.Add(time.Second)) == p.others || len(p.of) != 1 {
		t.Errorf("after a second %d are remembered", len(p.of))
	}
}
