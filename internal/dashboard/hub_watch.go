package dashboard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	// gather is how long news wait for others to go into the same frame.
	gather = 200 * time.Millisecond
	// retry is the pause before a watch that broke is begun again.
	retry = 500 * time.Millisecond
)

// watch follows the namespace until the context ends, as well as it can.
func (h *hub) watch(ctx context.Context) {
	for ctx.Err() == nil {
		pause := retry
		if err := h.follow(ctx); errors.Is(err, errGap) || errors.Is(err, errNames) {
			pause = gather // the table is read again
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// follow watches, reads the table, and then takes up changes until something is
// missing or the watch ends.
func (h *hub) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	events := make(chan *leaseholdv1.WatchResponse, mostNews)
	ended := make(chan error, 1)
	watching.Go(func() {
		stream := &localStream[leaseholdv1.WatchResponse]{ctx: ctx, send: func(e *leaseholdv1.WatchResponse) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		ended <- wire.ToError(h.admin.Watch(&leaseholdv1.WatchRequest{Version: wire.Version, Namespace: h.namespace}, stream))
	})
	// The first event says that we are watching: nothing is missed from here on.
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

// deleted notes that there is no such namespace: it has no table.
func (h *hub) deleted(err error) error {
	if leasehold.KindOf(err) != leasehold.NotFound {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.table != nil {
		h.state.table = nil
		h.renew()
	}
	return err
}

// begin reads the table, and shows it to everybody.
func (h *hub) begin(ctx context.Context, first *leaseholdv1.WatchResponse) error {
	since, newest := readPast(ctx, h.admin, h.namespace)
	table, err := readTable(ctx, h.admin, h.namespace, since)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.state.table != nil
	before := uint64(0)
	if again {
		before = h.state.table.lsn
	}
	// What the log has of the time before, but no change that is told later.
	var past []eventJSON
	for _, c := range slices.Backward(newest) {
		if c.GetLsn() > before && c.GetLsn() <= table.lsn {
			past = append(past, changeJSON(c))
		}
	}
	h.remember(past)
	if again && len(past) > 0 && newest[len(newest)-1].GetLsn() > before+1 {
		h.remember([]eventJSON{{At: time.Now().UnixMilli(), Kind: "gap", Text: "more has happened than is shown: the manager was out of touch"}})
	}
	if e, ok := eventOf(first); ok && !again {
		h.remember([]eventJSON{e})
	}
	h.state.table = table
	h.renew()
	return nil
}

// hear takes up events, and reports them a few times a second.
func (h *hub) hear(events <-chan *leaseholdv1.WatchResponse, ended <-chan error) error {
	var news []*leaseholdv1.WatchResponse
	flush := time.NewTimer(0)
	defer flush.Stop()
	for {
		select {
		case e := <-events:
			if len(news) == 0 {
				flush.Reset(gather)
			}
			if news = append(news, e); len(news) < mostNews {
				continue
			}
		case <-flush.C:
		case err := <-ended:
			return err // what it said last is read again
		}
		if err := h.report(news); err != nil {
			return err
		}
		news = nil
	}
}

// A newsJSON is what has happened. Changes of the lease table are to be applied in
// order, and lead to LSN.
type newsJSON struct {
	LSN    string      `json:"lsn"`
	Events []eventJSON `json:"events"`
}

// report takes up events and tells everybody.
func (h *hub) report(news []*leaseholdv1.WatchResponse) error {
	if len(news) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var events []eventJSON
	for _, w := range news {
		if w.GetMissed() > 0 {
			h.remember(append(events, eventJSON{
				At: w.GetAt().AsTime().UnixMilli(), Kind: "gap", Text: fmt.Sprintf("%d events came faster than they were read", w.GetMissed()),
			}))
			return errGap
		}
		if c := w.GetChange(); c != nil {
			fresh, err := h.state.table.apply(c)
			if err != nil {
				h.remember(events)
				return err
			}
			if !fresh {
				continue
			}
		}
		if e, ok := eventOf(w); ok {
			events = append(events, e)
		}
	}
	h.remember(events)
	if len(events) > 0 {
		h.publish("news", newsJSON{LSN: decimal(h.state.table.lsn), Events: events})
	}
	return nil
}
