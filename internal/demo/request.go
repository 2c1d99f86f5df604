package demo

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A due is a request that a user is to make.
type due struct {
	at     time.Time
	set    bool // the status, or else ask for it
	queued bool // it had to wait for another of its user
}

// setShare is how many of ten requests set the status.
const setShare = 3

func drawDue(at time.Time, random *rand.Rand) due {
	return due{at: at, set: random.IntN(10) < setShare}
}

// request makes one request and repeats it until it succeeds. It is not complete
// if it was dropped because the whole has ended.
func (l *load) request(ctx, whole context.Context, u *user, d due) (out outcome, complete bool) {
	number, republish := u.next(d.set)
	out.republished = republish
	_, owned := l.lookup.Find(u.key)
	out.waited, out.queued = !owned, d.queued
	var answer statusDocument
	begin := time.Now()
	out.err = l.lookup.Do(ctx, u.key, func(ctx context.Context, addr string) error {
		out.attempts++
		var err error
		answer, err = l.attempt(ctx, addr, u, number)
		if errors.Is(err, leasehold.NotOwner) {
			out.misroutes++
		}
		return err
	}, lookup.Idempotent(), lookup.Attempts(l.attempts))
	now := time.Now()
	out.took, out.tried = now.Sub(d.at), now.Sub(begin)
	if out.err != nil {
		if republish {
			u.lost.Store(true) // it is still to be done
		}
		return out, whole.Err() == nil
	}
	switch u.judge(number, answer.Number) {
	case stale:
		out.stale = true
	case forgotten:
		l.gone.suspect(u, now)
	case current:
		out.garbled = answer.Number != 0 && answer.Status != u.text(answer.Number, l.valueSize)
	}
	return out, true
}
