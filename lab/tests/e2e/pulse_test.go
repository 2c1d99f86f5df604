//go:build unix

package e2e

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A pulse is what an owner process found when it watched itself.
type pulse struct {
	Rounds int     // how often it looked
	Lost   int     // in how many of them it lacked a lease that it had at first
	Pauses []pause // in order
}

// A pause is a time in which the process did not run.
type pause struct {
	Length time.Duration
	Held   int // how many keys were still held, by the first checks after it
}

// Pauses shorter than that are nothing unusual. The number bounds what is kept.
const (
	longPause = 500 * time.Millisecond
	maxPauses = 64
)

// A watchful owner looks at the leases that it had at first.
type watchful struct {
	owner *owner.Owner
	keys  []leasehold.Lease
	last  time.Time // when it is certain to have run

	mu    sync.Mutex
	pulse pulse
}

// look checks all keys. The checks of a round that was interrupted may be from
// before or after the pause: it does not count, and the next one is the first.
func (w *watchful) look() {
	begin := time.Now()
	held := 0
	for _, l := range w.keys {
		if _, ok := w.owner.Check(l.Range.Start); ok {
			held++
		}
	}
	gone := missing(w.owner, w.keys)
	if time.Since(begin) >= longPause {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := begin.Sub(w.last); p >= longPause && len(w.pulse.Pauses) < maxPauses {
		w.pulse.Pauses = append(w.pulse.Pauses, pause{p, held})
	}
	w.last = time.Now()
	w.pulse.Rounds++
	if len(gone) > 0 {
		w.pulse.Lost++
	}
}

func (w *watchful) seen() pulse {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pulse
}
