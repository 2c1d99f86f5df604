package lookup

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// PublisherConfig configures a [Publisher].
type PublisherConfig[S any] struct {
	// Send creates the state of a name at its owner, typically with [Lookup.Do], and returns the generation of
	// the lease under which it was written. With again, the state was acknowledged before: the call refreshes it, or creates it
	// again. It is called concurrently, but not for one name, and must be idempotent.
	//
	// An error of kind ErrInvalid, ErrExists or ErrDenied ends the publication. After any other the call is repeated.
	Send func(ctx context.Context, name string, state S, again bool) (leasehold.Generation, error)
	// Refresh is the time after which a state is sent again without a loss, if the owner's copy expires. 0: never.
	Refresh time.Duration
	// Key returns the key of a name. Default [leasehold.KeyOf].
	Key func(name string) leasehold.Key
	// From is the LSN after which losses are handled: [Publisher.LSN] of an earlier Publisher whose names were passed to
	// [Publisher.Restore]. Default the present LSN.
	From leasehold.LSN
	// Concurrency limits the calls of Send by Run. Default 16.
	Concurrency int
}

// PublisherStats are the counters of a [Publisher].
type PublisherStats struct {
	Names       int // published now
	Republished int // states that were sent again after a loss
	Dropped     int // publications that Send has ended
}

// A Publisher keeps state of this caller at the owners of names, and creates it again after losses. It keeps a copy of the state of
// each name.
//
// It does not poll: the lookup reports which ranges were lost, and with which generation. States in such a range
// that have not been written since are sent again, and no others. While the lookup has no contact nothing
// is sent: losses are reported when contact is restored.
//
// A Publisher is safe for concurrent use. A loss costs a scan of all names, and one call of Send for each lost one.
type Publisher[S any] struct {
	lookup *Lookup
	cfg    PublisherConfig[S]
	wake   chan struct{} // names are due

	mu       sync.Mutex
	names    map[string]*published[S]
	stats    PublisherStats
	lost     int           // states that were lost, and were not sent again
	reported leasehold.LSN // losses up to here have marked their states
	handled  leasehold.LSN // LSN
}

type published[S any] struct {
	name string
	key  leasehold.Key
	turn chan struct{} // a lock, held during Send

	// Publisher.mu protects the rest.
	state   S
	version int // of state
	again   bool
	written leasehold.Generation // under which the owner has the state
	fresh   time.Time            // of the last acknowledgement
	due     bool                 // Run must send it
	lost    bool
	sending bool // by Run
}

// NewPublisher returns a publisher without names. The lookup must not be closed before [Publisher.Run] has returned.
func NewPublisher[S any](l *Lookup, cfg PublisherConfig[S]) *Publisher[S] {
	cfg.From = cmp.Or(cfg.From, l.LSN())
	cfg.Concurrency = cmp.Or(cfg.Concurrency, 16)
	if cfg.Key == nil {
		cfg.Key = leasehold.KeyOf
	}
	return &Publisher[S]{
		lookup: l, cfg: cfg, wake: make(chan struct{}, 1), names: make(map[string]*published[S]), reported: cfg.From, handled: cfg.From,
	}
}

// Publish sends the state of a name, or a changed one. It returns nil when the owner has acknowledged it. After an
// error that does not end the publication, Run repeats the call until it succeeds.
func (p *Publisher[S]) Publish(ctx context.Context, name string, state S) error {
	p.mu.Lock()
	s := p.add(name)
	s.state, s.again, s.due = state, false, true
	s.version++
	p.mu.Unlock()
	return p.send(ctx, s)
}

// Restore adds a name whose state the owner has acknowledged, in an earlier process of this caller. Call it before Run.
func (p *Publisher[S]) Restore(name string, state S, written leasehold.Generation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.add(name)
	s.state, s.again, s.written = state, true, written
}

// add returns a name, a new one if it is not published. The lock is held.
func (p *Publisher[S]) add(name string) *published[S] {
	s := p.names[name]
	if s == nil {
		s = &published[S]{name: name, key: p.cfg.Key(name), turn: make(chan struct{}, 1), fresh: time.Now()}
		p.names[name] = s
	}
	return s
}

// Withdraw ends the publication of a name, and waits for a running call of Send. It reports whether there was one. The owner keeps
// the state: the caller deletes it.
func (p *Publisher[S]) Withdraw(ctx context.Context, name string) (bool, error) {
	p.mu.Lock()
	s := p.names[name]
	if s != nil {
		p.remove(s)
	}
	p.mu.Unlock()
	if s == nil {
		return false, nil
	}
	if err := s.await(ctx); err != nil {
		return true, err
	}
	s.done()
	return true, nil
}

// remove ends a publication. The lock is held.
func (p *Publisher[S]) remove(s *published[S]) {
	delete(p.names, s.name)
	p.found(s)
}

// found records that a state is not lost any more. The lock is held.
func (p *Publisher[S]) found(s *published[S]) {
	if s.lost {
		s.lost = false
		p.lost--
	}
	if p.lost == 0 {
		p.handled = p.reported
	}
}

// Stats returns the current counters.
func (p *Publisher[S]) Stats() PublisherStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := p.stats
	stats.Names = len(p.names)
	return stats
}

// LSN returns an LSN up to which all lost states were created again: with it, with the states and their generations, a
// caller that was restarted continues.
func (p *Publisher[S]) LSN() leasehold.LSN {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.handled
}

func (s *published[S]) await(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return leasehold.Errorf("publish", leasehold.ErrUnavailable, s.name, "another call is running: %w", context.Cause(ctx))
	}
}

func (s *published[S]) done() { <-s.turn }

// send sends a state, unless it was withdrawn.
func (p *Publisher[S]) send(ctx context.Context, s *published[S]) error {
	if err := s.await(ctx); err != nil {
		p.signal()
		return err
	}
	defer s.done()
	p.mu.Lock()
	state, version, again, lost, withdrawn := s.state, s.version, s.again, s.lost, p.names[s.name] != s
	s.due = false
	p.mu.Unlock()
	if withdrawn {
		return nil
	}
	written, err := p.cfg.Send(ctx, s.name, state, again)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.names[s.name] != s: // withdrawn meanwhile
	case err == nil:
		s.written, s.fresh, s.again = written, time.Now(), s.version == version
		if lost && !s.due { // not lost again meanwhile
			p.stats.Republished++
			p.found(s)
		}
	case errors.Is(err, leasehold.ErrExists), errors.Is(err, leasehold.ErrInvalid), errors.Is(err, leasehold.ErrDenied):
		p.remove(s)
		p.stats.Dropped++
	default:
		s.due = true
		p.signal()
	}
	return err
}

const (
	sendTime  = 30 * time.Second       // of one attempt of Run
	sendPause = 250 * time.Millisecond // after a failed attempt
)

// Run follows losses, sends lost states again, and refreshes all, until the context ends. Then it
// returns nil. It fails if the lookup is closed. Call it once, before or after the first Publish: no loss in between is missed.
func (p *Publisher[S]) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(ctx)
	var sender sync.WaitGroup
	defer sender.Wait()
	defer stop()
	sender.Go(func() { p.sendDue(sending) })
	for loss, err := range p.lookup.LossesSince(ctx, p.cfg.From) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		p.handle(loss)
	}
	return nil // unreachable: the iterator ends with an error
}

// handle makes the states of a lost lease due. If its generation is unknown, because the loss was
// long ago, a state that was not lost is only refreshed.
func (p *Publisher[S]) handle(loss leasehold.Loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.names {
		if loss.Range.Contains(s.key) && (loss.Generation == 0 || s.written <= loss.Generation) {
			s.due = true
			if !s.lost {
				s.lost = true
				p.lost++
			}
		}
	}
	p.reported = max(p.reported, loss.Resume)
	if p.lost == 0 {
		p.handled = p.reported
	}
	p.signal()
}

func (p *Publisher[S]) signal() {
	select {
	case p.wake <- struct{}{}:
	default: // a signal is pending already
	}
}

// sendDue sends states that are due or to be refreshed, until the context ends.
func (p *Publisher[S]) sendDue(ctx context.Context) {
	var refresh <-chan time.Time
	if p.cfg.Refresh > 0 {
		ticker := time.NewTicker(max(p.cfg.Refresh/8, time.Millisecond))
		defer ticker.Stop()
		refresh = ticker.C
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	slots := make(chan struct{}, p.cfg.Concurrency)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-refresh:
		}
		for _, s := range p.takeDue() {
			slots <- struct{}{}
			calls.Go(func() {
				defer func() { <-slots }()
				p.resend(ctx, s)
			})
		}
	}
}

// takeDue returns the states that are due and not being sent.
func (p *Publisher[S]) takeDue() (due []*published[S]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.names {
		if (s.due || p.cfg.Refresh > 0 && time.Since(s.fresh) >= p.cfg.Refresh) && !s.sending {
			s.sending = true
			due = append(due, s)
		}
	}
	return due
}

// resend sends a state. A failed one is due again after a pause.
func (p *Publisher[S]) resend(ctx context.Context, s *published[S]) {
	attempt, cancel := context.WithTimeout(ctx, sendTime)
	err := p.send(attempt, s)
	cancel()
	if err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(sendPause):
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.sending = false
	if s.due {
		p.signal()
	}
}
