package chaos

import (
	"context"
	"os"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/chaos/check"
	"github.com/leasehold-dev/leasehold/internal/chaos/cluster"
	"github.com/leasehold-dev/leasehold/internal/chaos/vitals"
)

// A watch looks after what processes take to live, this one among them. It may be used from
// many goroutines at once.
type watch struct {
	on  bool
	log *vitals.Log

	mu      sync.Mutex
	callers map[string]vitals.Sample // what they have last said of themselves
}

func newWatch(on bool) *watch {
	return &watch{on: on, log: vitals.NewLog(), callers: make(map[string]vitals.Sample)}
}

// told takes up what a caller says of itself.
func (w *watch) told(name string, s vitals.Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.callers[name] = s
}

func (w *watch) caller(name string) vitals.Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.callers[name]
}

// ourselves is the name of this process.
const ourselves = "chaos"

// take takes samples of all.
func (w *watch) take(ctx context.Context, c *cluster.Cluster) {
	if !w.on {
		return
	}
	c.Vitals(ctx, w.log, w.caller)
	if outside, err := vitals.Outside(os.Getpid()); err == nil {
		w.log.Add(ourselves, os.Getpid(), outside, vitals.Inside())
	}
}

// judge says what grew (I8).
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
