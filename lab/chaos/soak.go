package chaos

import (
	"context"
	"os"
	"sync"

	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/leaks"
)

// A watch looks after what processes take to live, this one among them. It may be used from
// many goroutines at once.
type watch struct {
	on  bool
	log *leaks.Log

	mu      sync.Mutex
	callers map[string]leaks.Sample // what they have last said of themselves
}

func newWatch(on bool) *watch {
	return &watch{on: on, log: leaks.NewLog(), callers: make(map[string]leaks.Sample)}
}

// told takes up what a caller says of itself.
func (w *watch) told(name string, s leaks.Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.callers[name] = s
}

func (w *watch) caller(name string) leaks.Sample {
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
	c.Usage(ctx, w.log, w.caller)
	if outside, err := leaks.Outside(os.Getpid()); err == nil {
		w.log.Add(ourselves, os.Getpid(), outside, leaks.Inside())
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
