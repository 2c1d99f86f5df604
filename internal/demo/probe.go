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
// All keys of a server are asked about with one question, every few milliseconds.
// Whoever is refused, or not answered, goes on as any caller does, with
// [lookup.Lookup.Do]. A key was unavailable from the last answer before that to
// the first one after it. So what is measured is too long by up to a round of
// questions, and a key that was away for less than a round may be missed.
//
// Questions go over lines and not over HTTP, which would keep the processors so
// busy that what is measured is the wait for them. A round allocates nothing.
type prober struct {
	load *load
	dial dialer
	keys []*probed

	lines  *lines         // for questions about many keys
	chases *lines         // for those about one: they may have to wait, and the others must not
	asking sync.WaitGroup // questions to servers, and those who chase

	mu      sync.Mutex
	servers map[string]*asked
	gaps    *hdrhistogram.Histogram
	given   int // requests that were given up
}

// A probed is a key that is asked about.
type probed struct {
	user *user

	// Under the prober's lock:
	last    time.Time // of an answer
	chasing bool      // somebody asks with Do
}

// An asked is a server that is asked. Under the prober's lock.
type asked struct {
	addr  string
	busy  bool // it has yet to answer about its keys
	keys  []*probed
	words []leasehold.Key // the same
	heard func(words []byte, err error)
}

const (
	// probeEvery is how often keys are asked about, and maxProbed how many: that
	// are 2,000 small questions a second if there are ten servers, about some keys
	// of every range that moves. More would be answered alike, and cost the
	// processors more than all requests.
	probeEvery = 5 * time.Millisecond
	maxProbed  = 250
)

// A question has room for all keys.
const _ = uint(maxWords - maxProbed)

func newProber(l *load, dial dialer) *prober {
	p := &prober{load: l, dial: dial, servers: make(map[string]*asked), gaps: newHistogram()}
	n := min(maxProbed, len(l.users))
	for i := range n { // spread over all keys: users are sorted by them
		p.keys = append(p.keys, &probed{user: &l.users[i*len(l.users)/n]})
	}
	return p
}

// run asks until the context ends, and returns when all have had their answers.
// Those that have none when the whole ends do not count.
func (p *prober) run(ctx, whole context.Context) {
	p.lines, p.chases = newLines(whole, p.dial), newLines(whole, p.dial)
	defer p.lines.close()
	defer p.chases.close()
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
	for _, k := range p.keys {
		if k.chasing {
			continue
		}
		addr, ok := p.load.lookup.Find(k.user.key)
		if !ok {
			p.chase(ctx, k)
			continue
		}
		if s := p.server(ctx, addr); !s.busy {
			s.keys, s.words = append(s.keys, k), append(s.words, k.user.key)
		}
	}
	for addr, s := range p.servers {
		switch {
		case s.busy:
		case len(s.keys) == 0: // it has gone, or owns nothing now
			delete(p.servers, addr)
		default:
			p.ask(ctx, s)
		}
	}
}

// server returns the server at an address.
func (p *prober) server(ctx context.Context, addr string) *asked {
	s := p.servers[addr]
	if s == nil {
		s = &asked{addr: addr}
		s.heard = func(words []byte, err error) { p.heard(ctx, s, words, err) }
		p.servers[addr] = s
	}
	return s
}

// ask asks a server about its keys.
func (p *prober) ask(ctx context.Context, s *asked) {
	s.busy = true
	p.asking.Add(1)
	to, err := p.lines.to(s.addr)
	if err == nil {
		err = to.send(s.words, s.heard)
	}
	if err != nil {
		p.answered(ctx, s, nil, err)
	}
}

// heard is called with a server's answer.
func (p *prober) heard(ctx context.Context, s *asked, words []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered(ctx, s, words, err)
}

// answered takes up an answer about all keys of a server. Who was refused goes on
// with Do.
func (p *prober) answered(ctx context.Context, s *asked, words []byte, err error) {
	now := time.Now()
	for i, k := range s.keys {
		if err == nil && wordAt(words, i) != declined {
			k.last = now
			continue
		}
		p.chase(ctx, k)
	}
	s.busy, s.keys, s.words = false, s.keys[:0], s.words[:0]
	p.asking.Done()
}

// chase asks for one key until there is an answer.
func (p *prober) chase(ctx context.Context, k *probed) {
	k.chasing = true
	p.asking.Go(func() {
		err := p.load.lookup.Do(ctx, k.user.key, func(ctx context.Context, addr string) error {
			to, err := p.chases.to(addr)
			if err != nil {
				return err
			}
			number, err := to.ask(ctx, k.user.key)
			if err == nil && number == declined {
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
