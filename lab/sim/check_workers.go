package sim

import "github.com/leasehold-dev/leasehold"

// workers are an application with a worker for each of the fenced keys: a grant starts it, and it ends when the
// owner does not keep the lease any more, as AwaitEnd of the owner library reports. By the index of the key.
type workers struct {
	running [fencedKeys]leasehold.Generation
	granted [fencedKeys]leasehold.Generation // and not revoked
}

// eachFenced calls f for each fenced key in the leases, with its index.
func eachFenced(leases []leasehold.Lease, f func(i int, g leasehold.Generation)) {
	for _, l := range leases {
		for i := int(l.Range.Start >> 60); i <= int(l.Range.Last()>>60); i++ {
			if l.Range.Contains(fencedKey(i)) {
				f(i, l.Generation)
			}
		}
	}
}

func (w *workers) grant(leases []leasehold.Lease) {
	eachFenced(leases, func(i int, g leasehold.Generation) { w.running[i], w.granted[i] = g, g })
}

func (w *workers) revoke(leases []leasehold.Lease) {
	eachFenced(leases, func(i int, g leasehold.Generation) {
		if w.granted[i] == g {
			w.granted[i] = 0
		}
	})
}

// awaitEnds ends the workers whose leases have ended.
func (o *ownerHost) awaitEnds() {
	for i, g := range o.workers.running {
		if g != 0 && !o.view.Keeps(fencedKey(i), g) {
			o.workers.running[i] = 0
		}
	}
}

// checkWorkers is the agreement of checks, AwaitEnd and the callbacks: a worker runs until its lease is revoked,
// and each key that is served has a worker under the generation of its lease.
func (o *oracle) checkWorkers(h *ownerHost) {
	o.Checks[Workers]++
	w := &h.workers
	for i, running := range w.running {
		if running != w.granted[i] {
			o.Violated(Workers, "%s: by the callbacks the lease of key %v has generation %d, by AwaitEnd %d", h.label, fencedKey(i), w.granted[i], running)
		}
	}
	eachFenced(h.view.Leases, func(i int, g leasehold.Generation) {
		if running := w.running[i]; running != g {
			o.Violated(Workers, "%s serves key %v under generation %d, and its worker has generation %d", h.label, fencedKey(i), g, running)
		}
	})
}
