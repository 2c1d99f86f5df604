package top

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

// A Source looks again and again, and shows what it has seen.
type Source struct {
	client *cli.Client
	every  time.Duration
	show   func(*Snapshot) // called by run alone
	chosen chan Wish       // what the user wants to see

	look topLook
	last *Snapshot
	// heard is when a manager last answered; before that, when it was begun.
	heard time.Time
}

func NewSource(c *cli.Client, every time.Duration, show func(*Snapshot)) *Source {
	return &Source{
		client: c, every: every, show: show, chosen: make(chan Wish, 1), heard: time.Now(),
		look: topLook{Wish: Wish{Namespace: c.Namespace}, log: &Log{}},
	}
}

// Choose lets run look at something else. Of several wishes that it has not come to yet,
// the last counts. It is for one goroutine.
func (s *Source) Choose(wish Wish) {
	select {
	case <-s.chosen:
	default:
	}
	s.chosen <- wish
}

// Run looks until the context ends. It waits for what it started.
func (s *Source) Run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { s.watch(ctx) })
	for ctx.Err() == nil {
		seen, err := s.look.look(ctx, s.client.Admin)
		switch {
		case err == nil:
			s.last, s.heard = seen, seen.At
			s.show(seen)
		case ctx.Err() == nil:
			s.missing(s.client.Explain(ctx, err))
		}
		s.pause(ctx)
	}
}

// pause waits for the next look, or until something else is wanted.
func (s *Source) pause(ctx context.Context) {
	timer := time.NewTimer(s.every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case s.look.Wish = <-s.chosen:
	case <-timer.C:
	}
}

// missing shows once more what was seen last, and why there is nothing newer.
func (s *Source) missing(err error) {
	seen := &Snapshot{Owners: []topOwner{}, HotKeys: []admin.HotKey{}, Namespace: s.look.Namespace}
	if s.last != nil {
		*seen = *s.last
	}
	seen.At = time.Now()
	why := strings.Join(strings.Fields(console.Shown(strings.ReplaceAll(err.Error(), "\n", " "))), " ")
	seen.Stale = &staleDocument{Since: s.heard, Why: why}
	s.show(seen)
}

// watchAgain is the time after which a watch begins again that no manager has answered.
const watchAgain = 500 * time.Millisecond

// watch takes up events of all namespaces until the context ends.
func (s *Source) watch(ctx context.Context) {
	for ctx.Err() == nil {
		for event, err := range s.client.Admin.Watch(ctx, "") {
			if err == nil {
				s.look.log.take(event)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
}
