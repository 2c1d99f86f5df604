package demo

import "runtime/debug"

// Our own garbage is collected when there is so much of it, in per cent of what is
// kept, or when so much memory is in use.
const (
	garbagePercent = 400
	garbageLimit   = 2 << 30
)

// letGarbageWait has this process collect its garbage more seldom, until what it
// returns is called.
//
// A million users are a lot to look through. While that is done callers have to
// wait for a processor, and what they measure is that, not the servers. The
// servers do the same (see the command): a service that keeps its state in memory
// pays with memory for short pauses.
func letGarbageWait() (undo func()) {
	percent, limit := debug.SetGCPercent(garbagePercent), debug.SetMemoryLimit(garbageLimit)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
