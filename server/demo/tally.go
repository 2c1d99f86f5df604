package demo

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leasehold-dev/leasehold"
)

// promptly is the time within which a request must succeed to count for the availability.
const promptly = time.Second

// noticeTimeout is how long the notice of a loss may take. It is some hundred times the
// usual, because the processes of a demo compete for few processors.
const noticeTimeout = 3 * time.Second

// counts is what callers experienced.
type counts struct {
	CallCounts
	LossCounts
}

// A tally counts. It may be used by many goroutines at once.
type tally struct {
	mu     sync.Mutex
	counts counts
	losses []leasehold.Loss        // all that were notified
	total  *hdrhistogram.Histogram // latencies, in microseconds from when a request was due

	// missing has the users whose status a server did not have, though it was acknowledged and
	// no loss that covers the key was notified. The notice may be in flight: the answer may
	// come from the key's new owner before the lookup knows of it. If it does not come the
	// loss was silent.
	missing map[*user]time.Time
}

func newTally() *tally {
	t := &tally{total: newHistogram(), missing: make(map[*user]time.Time)}
	t.counts.LossesFor = make(map[string]uint64)
	return t
}

// An outcome is the result of a request.
type outcome struct {
	took        time.Duration // since it was due
	tried       time.Duration // since it was begun
	attempts    attempts
	owned       bool // the key had an owner at the beginning
	queued      bool // behind another request of its user
	republished bool
	err         error
}

func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.counts
	c.Requests++
	c.Retries += uint64(max(0, o.attempts.made-1))
	c.Misroutes += uint64(o.attempts.misrouted)
	measure(t.total, o.took)
	atOnce := o.attempts.made == 1 && o.owned
	if !atOnce {
		c.WithoutOwnerSeconds += o.tried.Seconds()
	}
	if o.err != nil {
		c.Failures++
		return
	}
	if atOnce && !o.queued {
		c.firstTry++
	}
	if o.took <= promptly {
		c.prompt++
	}
	if o.republished {
		c.Republished++
	}
}

func (t *tally) count(change func(*counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts)
}

func (t *tally) addLoss(l leasehold.Loss, byRestart bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.losses = append(t.losses, l)
	t.counts.Losses++
	if byRestart {
		t.counts.ByRestart++
	}
	t.counts.LossesFor[l.Cause.String()]++
}

// lossesAfter returns the losses that were notified after the first n.
func (t *tally) lossesAfter(n int) []leasehold.Loss {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.losses[n:])
}

// suspect begins to wait for the notice of a loss, unless it has just come.
func (t *tally) suspect(u *user, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.lost.Load() {
		return // explain came first
	}
	if _, waits := t.missing[u]; !waits {
		t.missing[u] = now
	}
}

// explain is for a notice that has come. The user has been marked as lost before.
func (t *tally) explain(u *user) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.missing, u)
}

// suspected is how many notices are awaited.
func (t *tally) suspected(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countSilent(now)
	return len(t.missing)
}

// countSilent counts the losses whose notices have not come in time.
func (t *tally) countSilent(now time.Time) {
	for u, since := range t.missing {
		if now.Sub(since) >= noticeTimeout {
			delete(t.missing, u)
			t.counts.SilentLosses++
		}
	}
}

func (t *tally) sum() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countSilent(time.Now())
	c := t.counts
	c.LossesFor = maps.Clone(c.LossesFor)
	c.Failed = c.Failures
	if c.Requests > 0 {
		of := func(n uint64) float64 { return float64(n) / float64(c.Requests) }
		c.Availability, c.Eventually, c.FirstTry = of(c.prompt), of(c.Requests-c.Failures), of(c.firstTry)
		c.Success = c.Eventually
	}
	c.MedianMillis, c.P99Millis = millis(quantileOf(t.total, 50)), millis(quantileOf(t.total, 99))
	return c
}

// Histograms have latencies from a microsecond to a minute, to two digits.
const maxLatency = time.Minute

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency.Microseconds(), 2) }

func measure(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(1, d.Microseconds()), maxLatency.Microseconds())) // it is within bounds
}

func quantileOf(h *hdrhistogram.Histogram, percent float64) time.Duration {
	return time.Duration(h.ValueAtQuantile(percent)) * time.Microsecond
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
