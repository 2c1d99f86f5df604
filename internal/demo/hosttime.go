package demo

// A hostTime is an instant, in nanoseconds, on a clock that all processes of
// this computer share, so that instants of different processes compare. Only
// the oracle uses it: leases run on each process's own clock.
type hostTime int64

// A span is the time between the beginning and the end of a call. What the call
// found was true at some instant in between.
type span struct{ before, after hostTime }

// A caller calls a function, and says when: timed, or untimed where nobody asks,
// because reading the clock takes longer than a check.
type caller func(f func()) span

func untimed(f func()) span {
	f()
	return span{}
}

// timed calls f and says when.
func timed(f func()) span {
	before := hostNow()
	f()
	return span{before, hostNow()}
}
