package oracle

// A Time is an instant, in nanoseconds, on a clock that all processes of this computer share. Only
// checks use it: leases run on each process's own clock.
type Time int64

// A Span is the time from the start to the end of a call. Its result was valid at some instant in between.
type Span struct{ Before, After Time }

// Timed calls f and returns the time of the call.
func Timed(f func()) Span {
	before := Now()
	f()
	return Span{before, Now()}
}
