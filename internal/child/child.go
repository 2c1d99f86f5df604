// Package child is the former name of package proc, for callers that have not moved yet.
package child

import "github.com/leasehold-dev/leasehold/internal/proc"

type (
	Child  = proc.Process
	Launch = proc.Launch
)

const CanSuspend = proc.CanPause

var (
	FreePorts     = proc.FreePorts
	EndWithParent = proc.EndWithParent
	Environment   = proc.Environment
	Tail          = proc.Tail
)
