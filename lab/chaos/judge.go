package chaos

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
)

// A watch samples the resource usage of processes, including this one. It is safe for concurrent use.
type watch struct {
	on  bool
	log *leaks.Log

	mu      sync.Mutex
	callers map[string]leaks.Sample // their last samples
}

func newWatch(on bool) *watch {
	return &watch{on: on, log: leaks.NewLog(), callers: make(map[string]leaks.Sample)}
}

// record stores a caller's sample of itself.
func (w *watch) record(name string, s leaks.Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.callers[name] = s
}

func (w *watch) caller(name string) leaks.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.callers[name]
}

const ourselves = "chaos"

func (w *watch) take(ctx context.Context, c *cluster.Cluster) {
	if !w.on {
		return
	}
	c.Usage(ctx, w.log, w.caller)
	if outside, err := leaks.Outside(os.Getpid()); err == nil {
		w.log.Add(ourselves, os.Getpid(), outside, leaks.Inside())
	}
}

func (w *watch) judge(into *Report) (found []check.Violation) {
	if !w.on {
		return nil
	}
	into.Vitals, into.ShortLives = w.log.Courses()
	for _, c := range into.Vitals {
		if !c.Flat() {
			found = append(found, check.Violation{Invariant: "I8", Broken: "something grows with time", Text: c.String(), Times: 1})
		}
	}
	return found
}

// Clocks beyond the drift bound break the invariants that depend on it. These violations are counted and
// excused: two owners of a key (I1), losses of leases that an owner still holds (I4), and owners in
// quarantine because they have detected their slow clocks (I6). All others must hold, such as fencing (I9).

// excuse removes the violations that clocks beyond the bound explain.
func (r *run) excuse(found []check.Violation) []check.Violation {
	if !r.cfg.Beyond {
		return found
	}
	return slices.DeleteFunc(found, func(v check.Violation) bool {
		excused := v.Invariant == "I1" || v.Invariant == "I4" || v.Invariant == "I6"
		if excused {
			r.report.Excused += v.Times
		}
		return excused
	})
}

// noticed is the log message of an owner that has detected its slow clock.
const noticed = "this computer's clock is too slow"

// notice counts the detections of slow clocks.
func (r *run) notice() {
	for _, o := range r.cluster.Owners {
		log, err := os.ReadFile(filepath.Join(r.cfg.Dir, o.Name+".log"))
		if err == nil { // an owner without a log has detected nothing
			r.report.Noticed += bytes.Count(log, []byte(noticed))
		}
	}
}
