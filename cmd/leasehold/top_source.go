package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A topSource looks again and again, through one manager after the other, and shows
// what it has seen. One connection serves for as long as it lasts.
type topSource struct {
	client *client
	every  time.Duration
	show   func(*topSnapshot) // called by run alone
	chosen chan topWish       // what the user wants to see

	look topLook
	last *topSnapshot
	// heard is when a manager last answered; before that, when it was begun.
	heard time.Time
}

func newTopSource(c *client, every time.Duration, show func(*topSnapshot)) *topSource {
	return &topSource{
		client: c, every: every, show: show, chosen: make(chan topWish, 1), heard: time.Now(),
		look: topLook{topWish: topWish{namespace: c.namespace}, log: &topLog{}},
	}
}

// choose lets run look at something else. Of several wishes that it has not come to yet,
// the last counts. It is for one goroutine.
func (s *topSource) choose(wish topWish) {
	select {
	case <-s.chosen:
	default:
	}
	s.chosen <- wish
}

// run looks until the context ends. It waits for what it started.
func (s *topSource) run(ctx context.Context) {
	for ctx.Err() == nil {
		answered := false
		err := s.client.ask(ctx, func(within context.Context, to admin) error {
			// Whatever comes after the first answer has no deadline.
			if err := s.see(within, to); err != nil {
				return err
			}
			answered = true
			return done{s.follow(ctx, to)}
		})
		if answered || ctx.Err() != nil {
			continue // another manager may answer at once
		}
		s.missing(err)
		s.pause(ctx)
	}
}

// follow watches and looks until a look fails.
func (s *topSource) follow(ctx context.Context, to admin) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { s.watch(ctx, to) })
	for s.pause(ctx) {
		within, cancel := context.WithTimeout(ctx, s.client.timeout)
		err := s.see(within, to)
		cancel()
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pause waits for the next look, or until something else is wanted. It reports
// whether to go on.
func (s *topSource) pause(ctx context.Context) bool {
	timer := time.NewTimer(s.every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case s.look.topWish = <-s.chosen:
	case <-timer.C:
	}
	return true
}

func (s *topSource) see(ctx context.Context, to admin) error {
	seen, err := s.look.look(ctx, to)
	if err != nil {
		return wire.ToError(err)
	}
	s.last, s.heard = seen, seen.at
	s.show(seen)
	return nil
}

// missing shows once more what was seen last, and why there is nothing newer.
func (s *topSource) missing(err error) {
	now := time.Now()
	seen := &topSnapshot{Owners: []topOwner{}, HotKeys: []hotKeyDocument{}, Namespace: s.look.namespace}
	if s.last != nil {
		*seen = *s.last
	}
	seen.At, seen.at = now.Format(time.RFC3339Nano), now
	why := strings.Join(strings.Fields(shown(strings.ReplaceAll(err.Error(), "\n", " "))), " ")
	seen.Stale = &staleDocument{Since: s.heard.Format(time.RFC3339Nano), Why: why, since: s.heard}
	s.show(seen)
}

// watch takes up events of all namespaces until the context ends, as well as it can.
func (s *topSource) watch(ctx context.Context, to admin) {
	for broken := false; ctx.Err() == nil; {
		heard, err := s.hear(ctx, to)
		if ctx.Err() != nil {
			return
		}
		if heard || !broken {
			s.look.log.gap("events may be missing: " + wire.ToError(err).Error())
		}
		broken = true
		select {
		case <-ctx.Done():
		case <-time.After(calm):
		}
	}
}

// hear takes up events until the stream breaks, and reports whether there were any.
func (s *topSource) hear(ctx context.Context, to admin) (heard bool, err error) {
	stream, err := to.Watch(ctx, &leaseholdv1.WatchRequest{Version: wire.Version})
	if err != nil {
		return false, err
	}
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			err = errors.New("the manager ended the stream")
		}
		if err != nil {
			return heard, err
		}
		heard = true
		if missed := event.GetMissed(); missed > 0 {
			s.look.log.gap(counted(int(missed), "event") + " missed: they came faster than they were read")
		}
		s.look.log.add(eventJSON(event))
	}
}
