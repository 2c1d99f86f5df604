package demo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// How all users are gone through: so many servers at a time are asked about so
// many users each.
const (
	askers      = 4
	perQuestion = 512
)

// everyonePatience is how long that may take without any progress.
const everyonePatience = 30 * time.Second

// fill has every user set a status for the first time. Nobody else may use them
// meanwhile. How many are done is told from several goroutines at once.
func (l *load) fill(ctx context.Context, progress func(done int)) error {
	return l.everyone(ctx, "filling the servers", progress, func(u *user) question {
		u.last = 1
		return question{u.key, u.last, u.text(u.last, l.valueSize)}
	}, func(u *user, _ reply) { u.acked = 1 })
}

// lookThrough asks for the status of every user, and judges each as one that the
// user has asked for. Nobody else may use them meanwhile.
func (l *load) lookThrough(ctx context.Context, progress func(done int)) error {
	return l.everyone(ctx, "looking all keys through", progress, func(u *user) question {
		return question{key: u.key}
	}, func(u *user, r reply) {
		l.tally.count(func(c *counts) { c.lookedThrough++ })
		switch u.judge(0, r.number) {
		case stale:
			l.tally.count(func(c *counts) { c.stale++ })
		case forgotten:
			l.gone.suspect(u, time.Now())
		case current:
			if r.number != 0 && r.sum != sumOf(u.text(r.number, l.valueSize)) {
				l.tally.count(func(c *counts) { c.garbled++ })
			}
		}
	})
}

// everyone asks one question of each user, of whoever owns its key, until all
// have been answered.
func (l *load) everyone(ctx context.Context, what string, progress func(int), ask func(*user) question, heard func(*user, reply)) error {
	left, since := l.users.each(), time.Now()
	for len(left) > 0 {
		progress(len(l.users) - len(left))
		remain, err := l.round(ctx, left, ask, heard, func(n int) { progress(len(l.users) - len(left) + n) })
		if len(remain) < len(left) {
			since = time.Now()
		}
		left = remain
		switch {
		case len(left) == 0 || ctx.Err() == nil && time.Since(since) < everyonePatience && pause(ctx, poll):
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			return fmt.Errorf("%s: %d of %d keys have had no answer for %v: %w", what, len(left), len(l.users), everyonePatience, err)
		}
	}
	progress(len(l.users))
	return nil
}

// round asks about each user once, and returns those who got no answer, with the
// last reason.
func (l *load) round(ctx context.Context, us []*user, ask func(*user) question, heard func(*user, reply), progress func(int)) ([]*user, error) {
	var (
		mu     sync.Mutex
		remain []*user
		failed error
		done   atomic.Int64
	)
	again := func(some []*user, err error) {
		mu.Lock()
		defer mu.Unlock()
		remain, failed = append(remain, some...), err
	}
	batches := make(chan batch)
	var asking sync.WaitGroup
	for range askers {
		asking.Go(func() {
			for b := range batches {
				answered, refused, err := l.askBatch(ctx, b, ask, heard)
				if len(refused) > 0 {
					again(refused, err)
				}
				progress(int(done.Add(int64(answered))))
			}
		})
	}
	unowned := l.byServer(us, func(b batch) { batches <- b })
	close(batches)
	asking.Wait()
	if len(unowned) > 0 {
		again(unowned, leasehold.NoOwner)
	}
	return remain, failed
}

// A batch is users whose keys have the same server.
type batch struct {
	addr  string
	users []*user
}

// byServer gathers users by who owns their keys, perQuestion at most, and returns
// those whose keys nobody owns.
func (l *load) byServer(us []*user, ready func(batch)) (unowned []*user) {
	gathered := make(map[string][]*user)
	for _, u := range us {
		addr, ok := l.lookup.Find(u.key)
		if !ok {
			unowned = append(unowned, u)
			continue
		}
		if gathered[addr] = append(gathered[addr], u); len(gathered[addr]) == perQuestion {
			ready(batch{addr, gathered[addr]})
			delete(gathered, addr)
		}
	}
	for addr, some := range gathered {
		ready(batch{addr, some})
	}
	return unowned
}

// askBatch asks one server, and returns how many users it has answered for, and
// the others with the reason.
func (l *load) askBatch(ctx context.Context, b batch, ask func(*user) question, heard func(*user, reply)) (answered int, refused []*user, err error) {
	questions := make([]question, len(b.users))
	for i, u := range b.users {
		questions[i] = ask(u)
	}
	replies, err := l.askMany(ctx, b.addr, questions)
	if err != nil {
		return 0, b.users, err
	}
	for i, r := range replies {
		if r.number == declined {
			refused = append(refused, b.users[i])
			continue
		}
		heard(b.users[i], r)
	}
	return len(replies) - len(refused), refused, leasehold.NotOwner
}
