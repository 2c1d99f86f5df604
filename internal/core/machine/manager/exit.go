package manager

// An exitStage is the progress of a session that leaves. It never returns to staying.
type exitStage uint8

const (
	staying     exitStage = iota
	parting               // it leaves when its leases have moved away
	partingIdle           // the newest message to it reports that nothing is left to wait for
)

// An exit is whether a session retires, that is, ends up without leases, and at whose request.
type exit struct {
	stage    exitStage
	draining bool // at an operator's request
}

// retires reports whether the session is to end up without leases.
func (e *exit) retires() bool { return e.parting() || e.draining }

// parting reports whether the session has asked to leave.
func (e *exit) parting() bool { return e.stage != staying }

// recordIdle records whether the newest message reports that nothing is left to wait for.
func (e *exit) recordIdle(idle bool) {
	switch {
	case idle:
		e.stage = partingIdle
	case e.stage == partingIdle:
		e.stage = parting
	}
}
