package clock_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// A slowHost is a simulated computer whose clock has half the rate.
type slowHost struct {
	mono, ahead, suspended time.Duration
}

func (h *slowHost) Mono() time.Duration                 { return h.mono }
func (h *slowHost) Wall() time.Time                     { return time.Unix(0, 0).Add(h.mono + h.ahead) }
func (h *slowHost) Until(d time.Duration) time.Duration { return 2 * (d - h.mono) }
func (h *slowHost) Suspended() time.Duration            { return h.suspended }

// A process on a simulated computer has its clocks: a suspend is detected, and a wall clock that is set is not one.
func TestClockOfSimulatedComputer(t *testing.T) {
	h := &slowHost{mono: time.Hour}
	c := clock.NewOn(h)
	d := clock.NewDetector(c)
	if got := c.Now(); got != mono.Instant(time.Hour) {
		t.Errorf("now is %v", got)
	}
	if got := c.Until(mono.Instant(time.Hour + time.Second)); got != 2*time.Second {
		t.Errorf("the next second takes %v", got)
	}
	h.mono += time.Second
	h.ahead = time.Hour
	if _, wall := c.Both(); !wall.Equal(c.Wall()) || !wall.Equal(h.Wall()) {
		t.Errorf("the wall clock is at %v and %v, want %v", wall, c.Wall(), h.Wall())
	}
	if got := d.Epoch(c.Now()); got != 0 {
		t.Errorf("epoch %d after the wall clock was set", got)
	}
	h.mono += time.Second
	h.ahead += time.Minute
	h.suspended += time.Minute
	if got := d.Epoch(c.Now()); got != 1 {
		t.Errorf("epoch %d after a suspend, want 1", got)
	}
}
