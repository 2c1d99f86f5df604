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
	// gather is how long events wait for others to go into the same frame.
	gather = 200 * time.Millisecond
	// retry is the pause before a watch that broke is begun again.
	retry = 500 * time.Millisecond
	// driftPatience is how long the table may not be followed before it is reported as stale. The
	// change of a leader takes less.
	driftPatience = 3 * time.Second
)

// A drift says since when and why the table is not followed.
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

// follow watches, reads the table, and then applies changes until one is missing or the watch ends.
func (h *hub) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	events := make(chan admin.Event, mostNews)
	ended := make(chan error, 1)
	watching.Go(func() { ended <- h.receive(ctx, events) })
	// After the first event nothing is missed.
	select {
	case err := <-ended:
		return h.deleted(err)
	case first := <-events:
		if err := h.begin(ctx, first); err != nil {
			return err
		}
	}
	return h.hear(events, ended)
}

// receive passes events on until one may be missing.
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

// deleted drops the table if there is no such namespace.
func (h *hub) deleted(err error) error {
	if leasehold.KindOf(err) != leasehold.ErrNotFound {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.table != nil {
		h.state.table, h.state.events = nil, nil // if there is one again, its log is another
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
	// Changes from before the watch, except for those that are received later.
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

// forget has follow begin again: the namespace was deleted, and a new one of its name has another log.
func (h *hub) forget() {
	select {
	case h.again <- struct{}{}:
	default:
	}
}

// knows reports whether a leader is that of the newest event of this type.
func (h *hub) knows(leader admin.LeaderName) bool {
	for _, e := range slices.Backward(h.state.events) {
		if e.Leader != nil {
			return *e.Leader == leader
		}
	}
	return false
}

// hear receives events, and reports them a few times a second.
func (h *hub) hear(events <-chan admin.Event, ended <-chan error) error {
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
			return err // the last events are read again
		case <-h.again:
			return errGap
		}
		if err := h.report(waiting); err != nil {
			return err
		}
		waiting = nil
	}
}

// news is what has happened. Changes of the lease table are to be applied in order, and lead to LSN.
type news struct {
	LSN    leasehold.LSN `json:"lsn,string"`
	Events []admin.Event `json:"events"`
}

// report applies events, and sends those that are new to all viewers.
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
