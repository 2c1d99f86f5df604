package lookup

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// How Do waits between attempts: twice as long each time, less up to a half at
// random so that callers do not come back together. It begins anew when the key
// has another owner: callers may hear of that before the owner does, or before
// it has put the state in its place, and then it is a matter of milliseconds.
// The attempts last 23 s on average: longer than it takes until the keys of a
// server that died have a new owner, about 16 s if lease and leader have the
// usual times.
const (
	firstWait     = 2 * time.Millisecond
	longestWait   = time.Second
	usualAttempts = 40
)

// A DoOption changes how [Lookup.Do] tries.
type DoOption func(*policy)

type policy struct {
	attempts   int // 0: the usual number
	idempotent bool
}

// WithIdempotent says that it does no harm if the request is carried out twice. Then
// Do also tries again if a server was not reached or did not answer in time.
func WithIdempotent() DoOption { return func(p *policy) { p.idempotent = true } }

// WithAttempts bounds how often f is called or, while the key has no owner, would
// have been. Less than 1 counts as 1. The default is 40, which takes about 23
// seconds; attempts at a server whose lease was suspended do not count then if the context
// has a deadline.
func WithAttempts(n int) DoOption { return func(p *policy) { p.attempts = max(1, n) } }

// Do calls f with the address of the server that owns the key, and again, after
// a backoff, for as long as it was not the owner: if f returns an error of kind
// [leasehold.ErrNotOwner] or [leasehold.ErrNoOwner], or if nobody owns the key for now.
// It tries again early when the table gives the key to another owner.
//
// [leasehold.ErrSuspended] is tried again likewise: the managers are out of the server's
// reach, it keeps the state, and nothing was done. That lasts as long as the outage. So Do
// tries until the context's deadline if there is one, unless [WithAttempts] was given.
//
// How a server says over the wire that it is not the owner is the application's
// choice; f makes the error from it, with [leasehold.Errorf] or as the bare kind.
//
// A server that was [leasehold.ErrNotOwner] has changed nothing: see the obligations
// in package leasehold. After [leasehold.ErrIndeterminate], and after
// [leasehold.ErrUnavailable], Do tries again only with [WithIdempotent]. An error of f without
// a kind counts as ErrIndeterminate if it is that of a context, or a gRPC status that says
// that there was no answer.
//
// Any other error is returned as f returned it. When Do gives up, because the
// context ended or after as many attempts as [WithAttempts] says, its error wraps that of the
// last attempt and that of the context. It is [leasehold.ErrIndeterminate] if any attempt
// was, and has the kind of the last attempt otherwise. It says so if no manager
// has answered for a while: see [Lookup.Silence]. On a closed Lookup it is
// [leasehold.ErrClosed].
//
// It takes no lock, and nothing is kept between calls: f may be called by many
// goroutines at once.
func (l *Lookup) Do(ctx context.Context, key leasehold.Key, f func(ctx context.Context, addr string) error, options ...DoOption) error {
	err := l.do(ctx, key, f, options)
	l.metrics.called(err)
	return err
}

func (l *Lookup) do(ctx context.Context, key leasehold.Key, f func(ctx context.Context, addr string) error, options []DoOption) error {
	p := policy{}
	for _, option := range options {
		option(&p)
	}
	wait, left := firstWait, p.attempts
	if left == 0 {
		left = usualAttempts
	}
	_, bounded := ctx.Deadline()
	indeterminate := false // an attempt may have been executed
	for attempt := 1; ; attempt++ {
		if l.ctx.Err() != nil {
			return leasehold.Errorf(opDo, outcome(leasehold.ErrClosed, indeterminate), key.String(), "the lookup is closed")
		}
		before := l.current.Load()
		err := l.try(ctx, before, key, f)
		if err == nil {
			return nil
		}
		kind := kindOf(err)
		indeterminate = indeterminate || kind == leasehold.ErrIndeterminate
		switch kind {
		case leasehold.ErrNotOwner, leasehold.ErrNoOwner, leasehold.ErrSuspended:
			l.Refresh()
		case leasehold.ErrUnavailable, leasehold.ErrIndeterminate:
			l.Refresh() // its server may be gone
			if !p.idempotent {
				return classified(err, kind, key)
			}
		default:
			return err
		}
		if kind != leasehold.ErrSuspended || !bounded || p.attempts > 0 {
			left--
		}
		if left == 0 {
			return leasehold.Errorf(opDo, outcome(kind, indeterminate), key.String(), "gave up after %d attempts%s: %w", attempt, l.unheard(), err)
		}
		moved := l.wait(ctx, before, key, wait)
		if ended := ctx.Err(); ended != nil {
			return leasehold.Errorf(opDo, outcome(kind, indeterminate), key.String(), "gave up after %d attempts%s: %w: %w", attempt, l.unheard(), ended, err)
		}
		l.metrics.retried(kind)
		if wait = min(2*wait, longestWait); moved {
			wait = firstWait
		}
	}
}

const opDo = "do"

// outcome is the kind of a call, given that of its last attempt.
func outcome(last leasehold.Kind, indeterminate bool) leasehold.Kind {
	if indeterminate {
		return leasehold.ErrIndeterminate
	}
	return last
}

// classified gives an error a kind if it has none.
func classified(err error, kind leasehold.Kind, key leasehold.Key) error {
	if leasehold.KindOf(err) != leasehold.Other {
		return err
	}
	return &leasehold.Error{Op: opDo, Kind: kind, Subject: key.String(), Err: err}
}

// try calls f once, if the key has an owner.
func (l *Lookup) try(ctx context.Context, s *snapshot, key leasehold.Key, f func(context.Context, string) error) error {
	addr, ok := s.find(key)
	if !ok {
		return leasehold.Errorf("find", leasehold.ErrNoOwner, key.String(), "nobody owns the key at lsn %d", s.table.LSN())
	}
	return f(ctx, addr)
}

// unheard adds to why Do gave up that no manager answers, if so: then the table is not
// what it should be.
func (l *Lookup) unheard() string {
	silence := l.Silence()
	if silence == 0 {
		return ""
	}
	return fmt.Sprintf(" (no manager has been heard of for %v)", silence.Round(time.Second))
}

// kindOf is the kind of an error of f. A gRPC status may have one in its details,
// as the managers' have; otherwise its code says whether its server was there.
func kindOf(err error) leasehold.Kind {
	if kind := leasehold.KindOf(err); kind != leasehold.Other {
		return kind
	}
	kind := leasehold.KindOf(wire.ToError(err))
	if kind == leasehold.ErrUnavailable {
		return leasehold.ErrIndeterminate // it was sent, perhaps
	}
	return kind
}

// wait waits for about d, or until there is no point in going on, or until the
// key has another owner than before: then it reports true.
func (l *Lookup) wait(ctx context.Context, before *snapshot, key leasehold.Key, d time.Duration) bool {
	timer := time.NewTimer(d - rand.N(d/2)) //nolint:gosec // for a pause
	defer timer.Stop()
	tried, _ := place(before.table, key)
	for s := before; ; s = l.current.Load() {
		if now, owned := place(s.table, key); owned && now.Generation != tried.Generation {
			return true
		}
		select {
		case <-s.superseded:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		case <-l.ctx.Done():
			return false
		}
	}
}
