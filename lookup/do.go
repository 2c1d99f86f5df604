package lookup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/plural"
	"github.com/leasehold-dev/leasehold/internal/runtime/watcher"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
)

// The backoff between attempts of Do: it doubles up to maxBackoff, minus a random part of up
// to a half, so that callers do not retry at the same time. It starts again at minBackoff when
// the key has a new owner: callers may receive the new table before the owner has its lease or
// has installed the state, which takes milliseconds.
// The default attempts last 23 s on average. That is longer than the takeover of the keys of a
// crashed server, about 16 s with the default durations of lease and leadership.
const (
	minBackoff      = 2 * time.Millisecond
	maxBackoff      = time.Second
	defaultAttempts = 40
)

// A DoOption is an option of [Lookup.Do].
type DoOption func(*policy)

type policy struct {
	attempts   int // 0: defaultAttempts
	idempotent bool
}

// WithIdempotent declares that the request may be executed twice. Then
// Do also retries if a server was unreachable or did not reply in time.
func WithIdempotent() DoOption { return func(p *policy) { p.idempotent = true } }

// WithAttempts limits the attempts, including those that do not call f because the key has no
// owner. Values below 1 count as 1. The default is 40, which takes about 23 seconds; with the
// default, attempts at a server whose lease is suspended do not count if the context has a
// deadline.
func WithAttempts(n int) DoOption { return func(p *policy) { p.attempts = max(1, n) } }

// Do calls f with the address of the key's owner. It retries after
// a backoff if f returns an error of kind [leasehold.ErrNotOwner] or
// [leasehold.ErrNoOwner], and if the key has no owner.
// It retries early when the table assigns the key to another owner.
//
// It retries [leasehold.ErrSuspended] as well: the server cannot reach the managers,
// keeps the state, and has done nothing. This lasts as long as the outage. So Do
// retries until the context's deadline, if there is one and [WithAttempts] is not given.
//
// When the table assigns the key to another owner while f runs, the context of f ends one to two
// seconds later: a paused or partitioned server keeps its connections and does not respond. This
// is an attempt without a reply, as below. A reply that f returns after that is valid.
//
// The application chooses how a server reports over the wire that it is not the owner; f
// converts that to an error, with [leasehold.Errorf] or as the bare kind.
//
// A server that refuses with [leasehold.ErrNotOwner] has changed nothing: see the obligations
// in package leasehold. After [leasehold.ErrIndeterminate] and
// [leasehold.ErrUnavailable], Do retries only with [WithIdempotent]. An error of f without
// a kind counts as ErrIndeterminate if it is the error of a context, or a gRPC status that
// means that no reply arrived.
//
// Any other error is returned unchanged. When the context ends or the attempts are used up,
// the error of Do wraps the error of the
// last attempt and that of the context. It is [leasehold.ErrIndeterminate] if any attempt
// was, and has the kind of the last attempt otherwise. It contains the time without a reply
// of a manager, if [Lookup.Silence] is not 0. On a closed Lookup it is
// [leasehold.ErrClosed].
//
// Do is safe for concurrent use; f may then run concurrently. An attempt costs a timer and a
// context.
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
	backoff, left := minBackoff, p.attempts
	if left == 0 {
		left = defaultAttempts
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
			l.Refresh() // the server may have crashed
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
			return leasehold.Errorf(opDo, outcome(kind, indeterminate), key.String(), "gave up after %s%s: %w", plural.Count(attempt, "attempt"), l.outage(), err)
		}
		moved := l.wait(ctx, before, key, backoff)
		if ended := ctx.Err(); ended != nil {
			return leasehold.Errorf(opDo, outcome(kind, indeterminate), key.String(), "gave up after %s%s: %w: %w", plural.Count(attempt, "attempt"), l.outage(), ended, err)
		}
		l.metrics.retried(kind)
		if backoff = min(2*backoff, maxBackoff); moved {
			backoff = minBackoff
		}
	}
}

const opDo = "do"

// outcome returns the kind of a call, given the kind of its last attempt.
func outcome(last leasehold.Kind, indeterminate bool) leasehold.Kind {
	if indeterminate {
		return leasehold.ErrIndeterminate
	}
	return last
}

// classified adds a kind to an error without one.
func classified(err error, kind leasehold.Kind, key leasehold.Key) error {
	if leasehold.KindOf(err) != leasehold.Other {
		return err
	}
	return &leasehold.Error{Op: opDo, Kind: kind, Subject: key.String(), Err: err}
}

// try calls f once, if the key has an owner, with a context that ends after the key has moved.
func (l *Lookup) try(ctx context.Context, s *snapshot, key leasehold.Key, f func(context.Context, string) error) error {
	addr, ok := s.find(key)
	if !ok {
		return leasehold.Errorf("find", leasehold.ErrNoOwner, key.String(), "the key has no owner at lsn %d", s.table.LSN())
	}
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer watcher.Owner(l, key, addr, cancel).Stop()
	err := f(attempt, addr)
	switch cause := context.Cause(attempt); {
	case !unknown(err, cause):
		return err
	case ctx.Err() == nil && errors.Is(cause, watcher.ErrMoved):
		return leasehold.Errorf(opDo, leasehold.ErrIndeterminate, key.String(), "the key moved to another server while %s did not respond", addr)
	}
	return classified(err, leasehold.ErrIndeterminate, key)
}

// unknown reports whether an error of f, without a kind of its own, means that no reply arrived. It may contain
// the cause for which the context of f has ended, as errors of net/http do, in place of the error of the context.
func unknown(err, cause error) bool {
	return leasehold.KindOf(err) == leasehold.Other &&
		(kindOf(err) == leasehold.ErrIndeterminate || cause != nil && errors.Is(err, cause))
}

// outage returns a remark for the error of Do if no manager replies, because the table may
// be stale then.
func (l *Lookup) outage() string {
	silence := l.Silence()
	if silence == 0 {
		return ""
	}
	return fmt.Sprintf(" (no manager has replied for %v)", silence.Round(time.Second))
}

// kindOf returns the kind of an error of f. A gRPC status may contain it in its details;
// otherwise it follows from the status code.
func kindOf(err error) leasehold.Kind {
	if kind := leasehold.KindOf(err); kind != leasehold.Other {
		return kind
	}
	kind := leasehold.KindOf(wire.ToError(err))
	if kind == leasehold.ErrUnavailable {
		return leasehold.ErrIndeterminate // the request may have been sent
	}
	return kind
}

// wait waits for the backoff d, minus a random part, or until the context or the Lookup ends.
// When the table assigns the key to another owner than before, wait returns true at once.
func (l *Lookup) wait(ctx context.Context, before *snapshot, key leasehold.Key, d time.Duration) bool {
	timer := time.NewTimer(d - rand.N(d/2)) //nolint:gosec // jitter
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
