//go:build unix

package e2e

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A pulse is the result of an owner process that monitored its leases.
type pulse struct {
	Rounds int     // of checks
	Lost   int     // rounds in which a lease was missing
	Pauses []pause // in order
}

// A pause is a period in which the process did not run.
type pause struct {
	Length time.Duration
	Held   int // leases that were held in the first round after it
}

// Shorter pauses are normal and not recorded. maxPauses bounds the list.
const (
	longPause = 500 * time.Millisecond
	maxPauses = 64
)

// A selfMonitor checks the leases that an owner held at the start.
type selfMonitor struct {
	owner *owner.Owner
	keys  []leasehold.Lease
	last  time.Time // the process was running then

	mu    sync.Mutex
	pulse pulse
}

// checkLeases checks all leases. A round that was interrupted by a pause is discarded, since
// its checks may be from before or after the pause.
func (w *selfMonitor) checkLeases() {
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

func (w *selfMonitor) result() pulse {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pulse
}
