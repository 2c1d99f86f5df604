package demo

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A prober reads some keys continuously and measures for how long a key has no answer.
// Requests at random times would hardly ever hit a key in the milliseconds in which it moves.
//
// All keys of a server are read with one batch at each interval. A key that is refused is
// read with a routed request, as any caller would. The key was unavailable from the last
// answer before that to the first one after it. So a measured time is too long by up to an
// interval, and a key that was unavailable for less may be missed.
type prober struct {
	load     *load
	interval time.Duration
	probes   map[*user]*probe
	asking   sync.WaitGroup

	mu       sync.Mutex
	gaps     *hdrhistogram.Histogram
	failures int // routed requests that failed
}

// A probe is a key that is read. It is guarded by the prober's lock.
type probe struct {
	last time.Time // of an answer
	busy bool      // a request is under way
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
	p := &prober{load: l, interval: max(minInterval, time.Duration(l.cfg.Owners)*perServer), gaps: newHistogram(), probes: make(map[*user]*probe)}
	for _, u := range l.users.spread(maxProbes) {
		p.probes[u] = &probe{}
	}
	return p
}

// run reads until the context ends, and returns when all keys have been answered. Requests
// that are under way when the whole ends do not count.
func (p *prober) run(ctx, whole context.Context) {
	defer p.asking.Wait()
	ticker := time.NewTicker(p.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.round(whole)
		}
	}
}

func (p *prober) round(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var idle []*user
	for u, k := range p.probes {
		if !k.busy {
			k.busy = true
			idle = append(idle, u)
		}
	}
	servers, unowned := p.load.byServer(idle)
	for addr, batch := range servers {
		p.asking.Go(func() { p.ask(ctx, addr, batch) })
	}
	for _, u := range unowned {
		p.chase(ctx, u)
	}
}

// ask reads keys with one batch. Those that are refused are chased.
func (p *prober) ask(ctx context.Context, addr string, batch []*user) {
	replies, err := p.load.askBatch(ctx, addr, batch, readStatus)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, u := range batch {
		if err != nil || replies[i].Refused {
			p.chase(ctx, u)
		} else {
			*p.probes[u] = probe{last: now}
		}
	}
}

// chase reads one key with a routed request, until there is an answer.
func (p *prober) chase(ctx context.Context, u *user) {
	p.asking.Go(func() {
		_, err := p.load.call(ctx, u, 0)
		now := time.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			p.failures++
		case !p.probes[u].last.IsZero():
			measure(p.gaps, now.Sub(p.probes[u].last))
		}
		*p.probes[u] = probe{last: now}
	})
}

// unavailability returns the measurements so far, and the number of failed requests.
func (p *prober) unavailability() (Unavailability, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := func(quantile float64) float64 { return millis(quantileOf(p.gaps, quantile)) }
	return Unavailability{
		Keys: len(p.probes), Times: uint64(p.gaps.TotalCount()), Median: at(50), P99: at(99), Max: at(100),
	}, p.failures
}
