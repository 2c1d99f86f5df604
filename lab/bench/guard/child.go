package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// childRole is the first argument of a child; the second is a path's name.
const childRole = "count-one-path"

const (
	repetitions = 8   // of which the least counts: some find no room left in what the allocator has at hand
	warmUps     = 300 // that do not count
	batch       = 100 // over which allocations are counted
)

// A readiness is what a child says before it is traced.
type readiness struct {
	Thread      int     `json:"thread"` // that will work
	Allocations float64 `json:"allocations"`
	Refused     string  `json:"refused,omitempty"` // why it cannot be traced
	Error       string  `json:"error,omitempty"`
}

// playChild does a path again and again, and returns the exit code.
func playChild(name string, traced bool) int {
	say := func(r readiness) { _ = json.NewEncoder(os.Stdout).Encode(r) } // it fails only if the parent is gone
	p, err := pathNamed(name)
	if err == nil {
		err = p.play(traced, say)
	}
	if err != nil {
		say(readiness{Error: err.Error()})
		return 1
	}
	return 0
}

func (p path) play(traced bool, say func(readiness)) error {
	once, stop, err := p.start(context.Background())
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	defer stop()
	debug.SetGCPercent(-1) // a child does not live long enough to need it
	runtime.GC()           // the end of a collection that is under way
	for range warmUps {
		once()
	}
	r := readiness{Allocations: allocations(once)}
	if !traced {
		say(r)
		return nil
	}
	runtime.LockOSThread()
	if err := traceMe(); err != nil {
		r.Refused = err.Error()
		say(r)
		return nil
	}
	r.Thread = thisThread()
	say(r) // now, since the parent cannot wait for a thread that is not traced yet
	for range repetitions {
		runtime.Breakpoint()
		once()
	}
	runtime.Breakpoint()
	return nil
}

// allocations returns how many a path makes each time. What runs beside it may
// make some, too, now and then: the least of some batches counts.
func allocations(once func()) float64 {
	least := -1.0
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range batch {
			once()
		}
		runtime.ReadMemStats(&after)
		if n := float64((after.Mallocs - before.Mallocs) / batch); least < 0 || n < least {
			least = n
		}
	}
	return least
}
