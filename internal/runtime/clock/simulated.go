package clock

import "time"

// simulated reads the clocks of a simulated computer.
type simulated struct{ Host }

func (s simulated) Offset() time.Duration {
	return time.Duration(s.Wall().UnixNano()) - s.Mono()
}

func (s simulated) Suspended() (time.Duration, bool) { return s.Host.Suspended(), true }

func (simulated) Tolerance() time.Duration { return time.Millisecond }
