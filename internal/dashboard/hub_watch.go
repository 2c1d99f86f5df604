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
	// driftPatience is how long changes of the table may fail to come before it is said
	// that what is shown is old. A leader that resigns is gone for less.
	driftPatience = 3 * time.Second
)

// A drift is that changes of the table do not come.
type drift struct {
	since time.Time
	why   string
}

// watch follows the namespace until the context ends, as well as it can.
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

// drifts notes that the table is not followed, since now if it was, and why.
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

// begin reads the table, and shows it to everybody.
func (h *hub) begin(ctx context.Context, first *leaseholdv1.WatchResponse) error {
	known := readPast(ctx, h.admin, h.namespace)
	table, err := readTable(ctx, h.admin, h.namespace, known)
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
	for _, c := range slices.Backward(known.newest) {
		if c.GetLsn() > before && c.GetLsn() <= table.lsn {
			past = append(past, changeJSON(c))
		}
	}
	h.remember(past)
	if again && len(past) > 0 && known.newest[len(known.newest)-1].GetLsn() > before+1 {
		h.remember([]eventJSON{{At: time.Now().UnixMilli(), Kind: "gap", Text: "more has happened than is shown: the manager was out of touch"}})
	}
	if e, ok := eventOf(first); ok && !h.knows(e) {
		h.remember([]eventJSON{e}) // somebody else leads, or this is the first watch
	}
	h.state.table, h.adrift = table, nil
	h.renew()
	return nil
}

// forget has the table read again by whoever follows it: there is no such namespace any
// more, and if there is one again its log is another.
func (h *hub) forget() {
	select {
	case h.again <- struct{}{}:
	default:
	}
}

// knows reports whether a leader is the one that was last told of.
func (h *hub) knows(leader eventJSON) bool {
	for _, e := range slices.Backward(h.state.events) {
		if e.Kind == "leader" {
			return e.Leader == leader.Leader && e.Term == leader.Term
		}
	}
	return false
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
		case <-h.again:
			return errGap
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
