package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// Processes with different start times have the same beats of the wall clock.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pause := range []time.Duration{0, 123 * time.Millisecond, 7 * time.Hour, 999_999_999} {
			time.Sleep(pause)
			c := New()
			time.Sleep(pause) // some time after the start
			beats := c.Beats()
			time.Sleep(5*time.Second + pause)
			now, wall := c.Both()
			beat := wall.Add(beats.Last(now, 30*time.Second).Sub(now))
			if early := wall.Sub(beat); early < 0 || early >= 640*time.Millisecond || beat.UnixNano()%int64(640*time.Millisecond) != 0 {
				t.Errorf("at %v the last beat was at %v", wall, beat)
			}
		}
	})
}
