package flease

import "github.com/leasehold-dev/leasehold/internal/core/mono"

// An admissionStage says whether the machine takes part. It never leaves retired.
type admissionStage uint8

const (
	silent admissionStage = iota // it waits, since it may have forgotten what it has promised
	takingPart
	retired // another process with our id is alive, and stays
)

// admission is whether the machine takes part. After a start it is silent until what it may have known before
// is of no importance any more.
type admission struct {
	stage admissionStage
	at    Time // until both are reached it is silent
	// since is when it began to take part.
	since mono.Instant
	met   map[Process]encounter // while it is silent
}

// ready reports whether the machine takes part.
func (a *admission) ready() bool { return a.stage == takingPart }

// joins returns when the machine takes part, if its clocks go on as they do.
func (a *admission) joins(now Time) mono.Instant {
	return max(a.at.Mono, now.Mono.Add(a.at.Wall.Sub(now.Wall)+1))
}
