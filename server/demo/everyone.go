package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const maxConcurrentBatches = 4

// everyoneTimeout bounds the time without progress while all users are gone through.
const everyoneTimeout = 30 * time.Second

// fill has every user set a status for the first time. The users must not be in use.
func (l *load) fill(ctx context.Context, progress func(done int)) error {
	return l.everyone(ctx, l.users.each(l.cfg.Users), progress, func(u *user) status {
		u.last = 1
		return status{User: u.name(), Number: u.last, Text: u.text(u.last, l.cfg.ValueSize)}
	}, func(u *user, _ status) { u.acked = 1 })
}

// lookThrough reads the status of every user, and judges each as one that the user has
// read. The users must not be in use.
func (l *load) lookThrough(ctx context.Context, progress func(done int)) error {
	return l.everyone(ctx, l.users.each(l.cfg.Users), progress, readStatus, func(u *user, s status) {
		l.tally.count(func(c *counts) { c.LookedUp++ })
		l.judge(u, 0, s)
	})
}

func readStatus(u *user) status { return status{User: u.name()} }

// everyone sends one question for each user to the owner of its key, until all have been
// answered.
func (l *load) everyone(ctx context.Context, left []*user, progress func(int), ask func(*user) status, answered func(*user, status)) error {
	since, done := time.Now(), 0
	for len(left) > 0 {
		refused, err := l.askAll(ctx, left, ask, func(u *user, s status) {
			answered(u, s)
			done++
			since = time.Now()
			progress(done)
		})
		left = refused
		switch {
		case len(left) == 0:
		case time.Since(since) > everyoneTimeout:
			return fmt.Errorf("%d keys have had no answer for %v: %w", len(left), everyoneTimeout, err)
		case !proc.Pause(ctx, poll):
			return ctx.Err()
		}
	}
	return nil
}

// askAll sends one question for each user, and returns those that were refused with the
// last reason. Answered is called by one goroutine at a time.
func (l *load) askAll(ctx context.Context, us []*user, ask func(*user) status, answered func(*user, status)) (refused []*user, last error) {
	servers := make(map[string][]*user)
	for _, u := range us {
		if addr, ok := l.table.Find(u.key); ok {
			servers[addr] = append(servers[addr], u)
		} else {
			refused, last = append(refused, u), leasehold.ErrNoOwner
		}
	}
	var mu sync.Mutex
	var asking errgroup.Group
	asking.SetLimit(maxConcurrentBatches)
	for addr, owned := range servers {
		for batch := range slices.Chunk(owned, maxBatch) {
			asking.Go(func() error {
				answers, err := l.askBatch(ctx, addr, batch, ask)
				mu.Lock()
				defer mu.Unlock()
				for i, u := range batch {
					if err != nil || answers[i].Refused {
						refused, last = append(refused, u), err
					} else {
						answered(u, answers[i])
					}
				}
				return nil
			})
		}
	}
	_ = asking.Wait() // the errors are in last
	return refused, last
}

// askBatch sends the questions for some users, maxBatch at most, to one server.
func (l *load) askBatch(ctx context.Context, addr string, batch []*user, ask func(*user) status) ([]status, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	questions := make([]status, len(batch))
	for i, u := range batch {
		questions[i] = ask(u)
	}
	body, err := json.Marshal(questions)
	if err != nil {
		return nil, err
	}
	var answers []status
	err = exchange(ctx, l.direct, http.MethodPost, l.scheme+"://"+addr+"/presence", body, &answers)
	if err == nil && len(answers) != len(batch) {
		err = leasehold.Errorf("batch", leasehold.ErrInternal, addr, "%d answers to %d questions", len(answers), len(batch))
	}
	return answers, err
}
