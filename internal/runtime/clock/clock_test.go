package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// Processes that started at different times have the same beats, on their wall clocks.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pause := range []time.Duration{0, 123 * time.Millisecond, 7 * time.Hour, 999_999_999} {
			time.Sleep(pause)
			c := New()
			time.Sleep(pause) // it is asked some time after it began
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
