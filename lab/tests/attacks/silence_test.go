//go:build linux

package attacks

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// Bounds for silent connections: number, memory and lifetime.
const (
	silentConns = 10_000
	silentCost  = 64 * mebibyte
	silentTime  = 10 * time.Second
)

// TestSilence: 10,000 connections without a request cost little memory, are closed soon, and
// do not affect other clients.
func TestSilence(t *testing.T) {
	t.Parallel()
	c := newTestbed(t, settings{})
	for _, test := range []struct {
		name string
		connFlood
	}{
		{"no bytes", connFlood{Count: silentConns}},
		{"one byte", connFlood{Count: silentConns, Payload: []byte("P")}},
		{"an HTTP/2 preface", connFlood{Count: silentConns, Payload: []byte(http2.ClientPreface)}},
		{"the beginning of a handshake", connFlood{Count: silentConns, Payload: []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")}},
		{"one byte at a time", connFlood{Count: 1000, Payload: []byte(http2.ClientPreface + strings.Repeat("\x00", 1000)), Pause: 300 * time.Millisecond}},
	} {
		t.Run(test.name, func(t *testing.T) { c.endure(t, test.connFlood) })
	}
}

// endure opens a flood of connections, all of which must be closed in time.
func (c *testbed) endure(t *testing.T, attackers connFlood) {
	t.Helper()
	c.endureAt(t, c.addr, attackers)
}

// endureAt is endure at another address.
func (c *testbed) endureAt(t *testing.T, addr string, attackers connFlood) {
	t.Helper()
	c.count()
	attackers.Addr = addr
	var report floodReport
	began := time.Now()
	more := c.check(t, silentCost, func() {
		report = attackers.attack(t, func() {
			// A new lookup can connect while all are open.
			_ = c.clients.open(t).Close(context.Background()) // never fails
		})
	})
	if report.Connected != attackers.Count || report.Longest > silentTime {
		t.Errorf("%d of %d connected, and the longest connection lasted %v", report.Connected, attackers.Count, report.Longest)
	}
	t.Logf("%d connections: memory grew by %.1f MiB, the longest lasted %v, all were closed after %v", report.Connected, float64(more)/mebibyte,
		report.Longest.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}
