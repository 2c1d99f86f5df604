//go:build linux

package attacks

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// What silence may cost, and how long it may last.
const (
	silent     = 10_000
	silentCost = 64 * mebibyte
	silentTime = 10 * time.Second
)

// Ten thousand connections that say nothing, or next to nothing, cost little, are soon
// gone, and nobody notices them.
func TestSilence(t *testing.T) {
	t.Parallel()
	c := newCastle(t, settings{})
	for _, test := range []struct {
		name string
		crowd
	}{
		{"they say nothing", crowd{Count: silent}},
		{"they say one byte", crowd{Count: silent, Say: []byte("P")}},
		{"they begin to speak HTTP/2", crowd{Count: silent, Say: []byte(http2.ClientPreface)}},
		{"they begin to shake hands", crowd{Count: silent, Say: []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")}},
		{"they say a byte now and then", crowd{Count: 1000, Say: []byte(http2.ClientPreface + strings.Repeat("\x00", 1000)), Slow: 300 * time.Millisecond}},
	} {
		t.Run(test.name, func(t *testing.T) { c.endure(t, test.crowd) })
	}
}

// endure has a crowd attack that must be gone in time.
func (c *castle) endure(t *testing.T, attackers crowd) {
	t.Helper()
	c.endureAt(t, c.addr, attackers)
}

// endureAt is endure at some address.
func (c *castle) endureAt(t *testing.T, addr string, attackers crowd) {
	t.Helper()
	c.count()
	attackers.Addr = addr
	var report crowdReport
	began := time.Now()
	more := c.during(t, silentCost, func() {
		report = attackers.attack(t, func() {
			// All are there, as far as they were let stay: somebody new comes through all the same.
			_ = c.honest.open(t).Close(context.Background()) // it never fails
		})
	})
	if report.Connected != attackers.Count || report.Longest > silentTime {
		t.Errorf("%d of %d have connected, and the last has lasted %v", report.Connected, attackers.Count, report.Longest)
	}
	t.Logf("%d connections: %.1f MiB more, the longest lasted %v, all over in %v", report.Connected, float64(more)/mebibyte,
		report.Longest.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}
