package demo

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A prober is callers who keep asking, each about one key, and who measure for
// how long they get no answer. Requests at random times would hardly ever meet a
// key in the milliseconds in which it moves.
//
// All keys of a server are asked about with one request, every few milliseconds.
// Whoever is refused, or not answered, goes on as any caller does, with
// [lookup.Lookup.Do]. A key was unavailable from the last answer before that to
// the first one after it. So what is measured is too long by up to a round of
// questions, and a key that was away for less than a round may be missed.
type prober struct {
	load *load
	keys []*probed

	asking sync.WaitGroup

	mu    sync.Mutex
	busy  map[string]bool // servers that have yet to answer
	gaps  *hdrhistogram.Histogram
	given int // requests that were given up
}

// A probed is a key that is asked about.
type probed struct {
	user *user

	// Under the prober's lock:
	last    time.Time // of an answer
	chasing bool      // somebody asks with Do
}

const (
	// probeEvery is how often keys are asked about, and maxProbed how many: that
	// are 2,000 small requests a second if there are ten servers.
	probeEvery = 5 * time.Millisecond
	maxProbed  = 500
)

func newProber(l *load) *prober {
	p := &prober{load: l, busy: make(map[string]bool), gaps: newHistogram()}
	n := min(maxProbed, len(l.users))
	for i := range n { // spread over all keys: users are sorted by them
		p.keys = append(p.keys, &probed{user: &l.users[i*len(l.users)/n]})
	}
	return p
}

// run asks until the context ends, and returns when all have had their answers.
// Those that have none when the whole ends do not count.
func (p *prober) run(ctx, whole context.Context) {
	defer p.asking.Wait()
	ticker := time.NewTicker(probeEvery)
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

// round asks every server that is not busy about its keys.
func (p *prober) round(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byServer := make(map[string][]*probed)
	for _, k := range p.keys {
		if k.chasing {
			continue
		}
		addr, ok := p.load.lookup.Find(k.user.key)
		switch {
		case !ok:
			p.chase(ctx, k)
		case !p.busy[addr]:
			byServer[addr] = append(byServer[addr], k)
		}
	}
	for addr, keys := range byServer {
		p.busy[addr] = true
		p.asking.Go(func() { p.ask(ctx, addr, keys) })
	}
}

// ask asks one server about some keys.
func (p *prober) ask(ctx context.Context, addr string, keys []*probed) {
	questions := make([]question, len(keys))
	for i, k := range keys {
		questions[i].key = k.user.key
	}
	replies, err := p.load.askMany(ctx, addr, questions)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, addr)
	for i, k := range keys {
		if err == nil && replies[i].number != declined {
			k.last = now
			continue
		}
		p.chase(ctx, k)
	}
}

// chase asks for one key until there is an answer.
func (p *prober) chase(ctx context.Context, k *probed) {
	k.chasing = true
	p.asking.Go(func() {
		err := p.load.lookup.Do(ctx, k.user.key, func(ctx context.Context, addr string) error {
			replies, err := p.load.askMany(ctx, addr, []question{{key: k.user.key}})
			if err == nil && replies[0].number == declined {
				err = leasehold.NotOwner
			}
			return err
		}, lookup.Idempotent(), lookup.Attempts(p.load.attempts))
		p.found(k, err, ctx.Err() != nil)
	})
}

// found notes how long a key was away.
func (p *prober) found(k *probed, err error, over bool) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	k.chasing = false
	switch {
	case over:
	case err != nil:
		p.given++
	case !k.last.IsZero():
		measure(p.gaps, now.Sub(k.last))
	}
	k.last = now
}

// An absence is for how long keys had no answer.
type absence struct {
	keys                  int    // that are asked about
	times                 uint64 // that one had none
	failures              int    // requests that were given up
	median, slow, longest time.Duration
}

func (p *prober) absence() absence {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := paceOf(p.gaps, time.Second)
	return absence{
		keys: len(p.keys), times: uint64(p.gaps.TotalCount()), failures: p.given,
		median: h.median, slow: h.slow, longest: time.Duration(p.gaps.Max()) * time.Microsecond,
	}
}
