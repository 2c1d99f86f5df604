package flease

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// An admissionStage is whether the machine participates. It never leaves retired.
type admissionStage uint8

const (
	silent admissionStage = iota // it waits, since it may have lost promises of an earlier process
	participating
	retired // a twin (another process with our id) stays, and we have given way
)

// admission controls participation. After a start the machine is silent until all state that an
// earlier process may have had is irrelevant.
type admission struct {
	stage admissionStage
	at    Time // silent until both clocks have reached it
	// since is the start of participation.
	since      mono.Instant
	encounters map[Process]encounter // processes received from while silent
}

// ready reports whether the machine participates.
func (a *admission) ready() bool { return a.stage == participating }

// joins returns the expected start of participation, on the monotonic clock.
func (a *admission) joins(now Time) mono.Instant {
	return max(a.at.Mono, now.Mono.Add(a.at.Wall.Sub(now.Wall)+1))
}
