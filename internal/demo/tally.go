package demo

import (
	"maps"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leasehold-dev/leasehold"
)

// counts is what callers experienced.
type counts struct {
	requests      uint64 // that have ended
	failures      uint64 // that did not succeed in the end
	prompt        uint64 // that succeeded within promptly of when they were due
	firstTry      uint64 // that succeeded at the first attempt, made when they were due
	retries       uint64 // attempts after the first
	misroutes     uint64 // attempts refused because the server did not own the key
	stale         uint64 // answers from before what was acknowledged
	garbled       uint64 // answers with another text than the user had set
	silent        uint64 // answers that had forgotten it, and nobody was told of a loss
	losses        uint64 // that callers were notified of
	byRestart     uint64 // of these, for which a restart is to blame
	byCause       map[leasehold.Cause]uint64
	lookedThrough int           // keys, when all was over
	republished   uint64        // statuses set again because of a loss
	unowned       time.Duration // that users tried for, who did not find the owner of their key at once, all together
}

// promptly is how soon a request must succeed to count as served when it was due.
const promptly = time.Second

// A tally counts. It may be used from many goroutines at once.
type tally struct {
	mu     sync.Mutex
	counts counts
	total  *hdrhistogram.Histogram // microseconds from when a request was due to its end
	recent *hdrhistogram.Histogram // the same of those that succeeded, since it was last asked
	asked  time.Time
}

// Latencies from a microsecond to a minute are kept to two digits.
const longestLatency = time.Minute

func newTally() *tally {
	return &tally{
		counts: counts{byCause: make(map[leasehold.Cause]uint64)},
		total:  newHistogram(), recent: newHistogram(), asked: time.Now(),
	}
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longestLatency.Microseconds(), 2)
}

func measure(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(1, d.Microseconds()), longestLatency.Microseconds())) // it is within bounds
}

// An outcome is how a request went.
type outcome struct {
	took        time.Duration // since it was due
	tried       time.Duration // since it was begun
	attempts    int           // that reached for a server
	waited      bool          // the key had no owner at first
	queued      bool          // behind another request of its user
	misroutes   int
	stale       bool
	garbled     bool
	republished bool
	err         error
}

func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.counts
	c.requests++
	c.retries += uint64(max(0, o.attempts-1))
	c.misroutes += uint64(o.misroutes)
	measure(t.total, o.took)
	atOnce := o.attempts == 1 && !o.waited
	if !atOnce {
		c.unowned += o.tried
	}
	if o.err != nil {
		c.failures++
		return
	}
	if atOnce && !o.queued {
		c.firstTry++
	}
	if o.took <= promptly {
		c.prompt++
	}
	if o.stale {
		c.stale++
	}
	if o.garbled {
		c.garbled++
	}
	if o.republished {
		c.republished++
	}
	measure(t.recent, o.took)
}

// count changes what is counted.
func (t *tally) count(do func(*counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do(&t.counts)
}

func (t *tally) addLoss(l leasehold.Loss, byRestart bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.losses++
	if byRestart {
		t.counts.byRestart++
	}
	t.counts.byCause[l.Cause]++
}

// sum returns everything so far.
func (t *tally) sum() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	c.byCause = maps.Clone(t.counts.byCause)
	return c
}

// A pace is how fast requests succeed.
type pace struct {
	perSecond    float64
	median, slow time.Duration // slow is what 99 of 100 requests do not exceed
}

// lately returns the pace since it was last asked.
func (t *tally) lately() pace {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	p := paceOf(t.recent, now.Sub(t.asked))
	t.recent.Reset()
	t.asked = now
	return p
}

// overall returns the pace of all requests, which took so long together.
func (t *tally) overall(took time.Duration) pace {
	t.mu.Lock()
	defer t.mu.Unlock()
	return paceOf(t.total, took)
}

func paceOf(h *hdrhistogram.Histogram, took time.Duration) pace {
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) * time.Microsecond }
	return pace{perSecond: float64(h.TotalCount()) / max(took.Seconds(), 1e-3), median: at(50), slow: at(99)}
}
