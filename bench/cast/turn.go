package cast

import "time"

// A Turn is what happened in one: how many leases were acquired, and how long it
// took from the first request to the last answer.
type Turn struct {
	Leases int
	Took   time.Duration
	CPU    time.Duration // of all processes that took part, clients too
}

// Rate returns leases per second.
func (t Turn) Rate() float64 {
	if t.Took <= 0 {
		return 0
	}
	return float64(t.Leases) / t.Took.Seconds()
}

// Effort returns the time of processors per lease.
func (t Turn) Effort() time.Duration {
	if t.Leases == 0 {
		return 0
	}
	return t.CPU / time.Duration(t.Leases)
}

// Plus returns both turns, one after the other.
func (t Turn) Plus(o Turn) Turn {
	return Turn{t.Leases + o.Leases, t.Took + o.Took, t.CPU + o.CPU}
}
