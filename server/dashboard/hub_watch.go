package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
)

const (
	// gather is the time in which events are batched into one frame.
	gather = 200 * time.Millisecond
	// retry is the delay before a failed watch is restarted.
	retry = 500 * time.Millisecond
	// driftPatience is the time without a watch after which the table is reported as stale. A leader
	// change takes less.
	driftPatience = 3 * time.Second
)

// A drift is the start and the cause of an interruption of the watch.
type drift struct {
	since time.Time
	why   string
}

func (h *hub) watch(ctx context.Context) {
	h.drifts(nil)
	for ctx.Err() == nil {
		pause := retry
		err := h.follow(ctx)
		if errors.Is(err, errGap) || errors.Is(err, errNames) {
			pause = gather // the table is read again
		}
		h.drifts(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (h *hub) drifts(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.adrift == nil {
		h.adrift = &drift{since: time.Now(), why: "the table has not been read yet"}
	}
	if why != nil {
		h.adrift.why = why.Error()
	}
}

// follow watches, reads the table, and then applies changes until one is missed or the watch ends.
func (h *hub) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	events := make(chan admin.Event, mostNews)
	ended := make(chan error, 1)
	watching.Go(func() { ended <- h.receive(ctx, events) })
	// After its first event the watch is complete.
	select {
	case err := <-ended:
		return h.deleted(err)
	case first := <-events:
		if err := h.begin(ctx, first); err != nil {
			return err
		}
	}
	return h.batch(events, ended)
}

// receive forwards events until one may be missing.
func (h *hub) receive(ctx context.Context, events chan<- admin.Event) error {
	for e, err := range h.client.Watch(ctx, h.namespace) {
		switch {
		case err != nil:
			return err
		case e.Type == admin.EventGap:
			return errors.New(e.Text)
		}
		select {
		case events <- e:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// deleted drops the table if the namespace does not exist.
func (h *hub) deleted(err error) error {
	if leasehold.KindOf(err) != leasehold.ErrNotFound {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.table != nil {
		h.state.table, h.state.events = nil, nil // a new namespace of this name has another log
		h.renew()
	}
	return err
}

func (h *hub) begin(ctx context.Context, first admin.Event) error {
	known := readPast(ctx, h.client, h.namespace)
	table, err := readTable(ctx, h.client, h.namespace, known)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.state.table != nil
	before := leasehold.LSN(0)
	if again {
		before = h.state.table.lsn
	}
	// Changes before the watch, except those that arrive later.
	var past []admin.Event
	for _, c := range slices.Backward(known.newest) {
		if c.LSN > before && c.LSN <= table.lsn {
			past = append(past, c.Event(h.namespace))
		}
	}
	h.remember(past)
	if again && len(past) > 0 && known.newest[len(known.newest)-1].LSN > before+1 {
		h.remember([]admin.Event{{At: time.Now(), Type: admin.EventGap, Text: "more has happened than is shown: the manager was out of touch"}})
	}
	if first.Leader != nil && !h.knows(*first.Leader) {
		h.remember([]admin.Event{first}) // there is another leader, or this is the first watch
	}
	h.state.table, h.adrift = table, nil
	h.renew()
	return nil
}

// restart makes follow start again: the namespace was deleted, and a new one of its name has another log.
func (h *hub) restart() {
	select {
	case h.again <- struct{}{}:
	default:
	}
}

// knows reports whether the newest leader event has this leader.
func (h *hub) knows(leader admin.LeaderName) bool {
	for _, e := range slices.Backward(h.state.events) {
		if e.Leader != nil {
			return *e.Leader == leader
		}
	}
	return false
}

// batch receives events, and reports them a few times per second.
func (h *hub) batch(events <-chan admin.Event, ended <-chan error) error {
	var waiting []admin.Event
	flush := time.NewTimer(0)
	defer flush.Stop()
	for {
		select {
		case e := <-events:
			if len(waiting) == 0 {
				flush.Reset(gather)
			}
			if waiting = append(waiting, e); len(waiting) < mostNews {
				continue
			}
		case <-flush.C:
		case err := <-ended:
			return err // the last events are read again after the restart
		case <-h.again:
			return errGap
		}
		if err := h.report(waiting); err != nil {
			return err
		}
		waiting = nil
	}
}

// news is a batch of events. Changes of the lease table are in order, and lead to LSN.
type news struct {
	LSN    leasehold.LSN `json:"lsn,string"`
	Events []admin.Event `json:"events"`
}

// report applies events, and broadcasts the new ones.
func (h *hub) report(received []admin.Event) error {
	if len(received) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var events []admin.Event
	for _, e := range received {
		if e.Missed > 0 {
			text := fmt.Sprintf("%d events came faster than they were read", e.Missed)
			h.remember(append(events, admin.Event{At: e.At, Type: admin.EventGap, Text: text}))
			return errGap
		}
		if e.Change != nil {
			fresh, err := h.state.table.apply(e.Change)
			if err != nil {
				h.remember(events)
				return err
			}
			if !fresh {
				continue
			}
		}
		events = append(events, e)
	}
	h.remember(events)
	if len(events) > 0 {
		h.publish("news", news{LSN: h.state.table.lsn, Events: events})
	}
	return nil
}
