package manager

// An exitStage says how far a session is that wants to leave. It never goes back to staying.
type exitStage uint8

const (
	staying     exitStage = iota
	parting               // it wants to leave when its leases have moved away
	partingIdle           // our newest message says that nothing is left to wait for
)

// An exit says whether a session is to hold nothing in the end, and who wants that.
type exit struct {
	stage    exitStage
	draining bool // an operator wants it empty
}

// retires reports whether the session is to hold nothing in the end.
func (e *exit) retires() bool { return e.parting() || e.draining }

// parting reports whether the session wants to leave.
func (e *exit) parting() bool { return e.stage != staying }

// recordIdle records whether our newest message says that nothing is left to wait for.
func (e *exit) recordIdle(idle bool) {
	switch {
	case idle:
		e.stage = partingIdle
	case e.stage == partingIdle:
		e.stage = parting
	}
}
