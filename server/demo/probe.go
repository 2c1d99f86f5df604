package demo

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// A prober reads some keys continuously and measures for how long a key has no answer.
// Requests at random times would hardly ever hit a key in the milliseconds in which it moves.
//
// All keys of a server are read with one batch at each interval. The key was unavailable from the
// last answer before a refusal to the first one after it. So a measured time is too long by up to
// two intervals, and a key that was unavailable for less may be missed.
type prober struct {
	load     *load
	interval time.Duration
	users    []*user

	mu    sync.Mutex
	last  map[*user]time.Time // of an answer
	since map[*user]time.Time // the last answer before the key was refused
	gaps  *hdrhistogram.Histogram
}

const (
	// perServer bounds the rate of batches to 1,000 per second, of all servers together: they
	// must not take more processor time than all requests.
	perServer   = time.Millisecond
	minInterval = 5 * time.Millisecond
	// maxProbes is enough for some keys of every range that moves. More would have the same
	// answers.
	maxProbes = 250
)

func newProber(l *load) *prober {
	return &prober{
		load: l, interval: max(minInterval, time.Duration(l.cfg.Owners)*perServer), users: l.users.each(maxProbes),
		last: make(map[*user]time.Time), since: make(map[*user]time.Time), gaps: newHistogram(),
	}
}

// run reads until the context ends.
func (p *prober) run(ctx context.Context) {
	for proc.Pause(ctx, p.interval) {
		refused, _ := p.load.askAll(ctx, p.users, readStatus, func(u *user, _ status) { p.answered(u, time.Now()) })
		p.mu.Lock()
		for _, u := range refused {
			if at, ok := p.last[u]; ok && p.since[u].IsZero() {
				p.since[u] = at
			}
		}
		p.mu.Unlock()
	}
}

func (p *prober) answered(u *user, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.since[u]; ok {
		measure(p.gaps, now.Sub(at))
		delete(p.since, u)
	}
	p.last[u] = now
}

// unavailability returns the measurements so far.
func (p *prober) unavailability() Unavailability {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := func(quantile float64) float64 { return millis(quantileOf(p.gaps, quantile)) }
	return Unavailability{Keys: len(p.users), Times: uint64(p.gaps.TotalCount()), Median: at(50), P99: at(99), Max: at(100)}
}
