package dashboard

import (
	"context"
	"reflect"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	pollEvery = time.Second
	// pollTimeout bounds all requests of a poll.
	pollTimeout = 3 * time.Second
	// slowPolls is the number of polls per request of data that changes slowly.
	slowPolls = 3
	// hotKeys is the number of hot keys.
	hotKeys = 50
)

func (h *hub) poll(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	p := &poller{hub: h}
	for n := 0; ; n++ {
		p.poll(ctx, n%slowPolls == 0)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// A poller polls and detects changes. It is for one goroutine.
type poller struct {
	hub        *hub
	namespaces []admin.Namespace // from the last request
	touch      int64             // time of the last complete poll
	absent     bool              // the namespace does not exist
}

func (p *poller) poll(ctx context.Context, all bool) {
	bounded, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	now := live{At: time.Now().UnixMilli()}
	owners, err := p.essentials(bounded, &now, all)
	if err == nil && all {
		p.details(bounded, &now)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		now.Stale = &stale{Since: p.touch, Why: err.Error()}
	} else {
		p.touch = now.At
	}
	p.publish(&now, owners)
}

// essentials requests the data of every poll. An error is the reason of stale data.
func (p *poller) essentials(ctx context.Context, now *live, all bool) (map[string]ownerRow, error) {
	h := p.hub
	status, err := h.client.Status(ctx)
	if err != nil {
		return nil, err
	}
	now.Status = steadyStatus(status)
	if _, known := p.namespace(); all || !known {
		if namespaces, err := h.client.Namespaces(ctx); err == nil { // otherwise keep the old ones
			p.namespaces = namespaces
		}
	}
	now.Namespaces = p.namespaces
	if status.Problem != "" {
		return nil, leasehold.Errorf("look", leasehold.ErrUnavailable, status.Manager, "%s", status.Problem)
	}
	_, found := status.Namespace(h.namespace)
	if p.absent = !found; p.absent {
		return nil, nil // the page displays the state of the namespace
	}
	listed, err := h.client.Owners(ctx, h.namespace)
	if err != nil {
		return nil, err
	}
	config, _ := p.namespace()
	owners := make(map[string]ownerRow, len(listed.Owners))
	for _, o := range listed.Owners {
		owners[o.Session] = rowOf(o, config)
	}
	moves, err := h.client.Moves(ctx, h.namespace)
	if err != nil {
		return nil, err
	}
	now.Moves = steadyMoves(moves)
	return owners, nil
}

func (p *poller) namespace() (admin.Namespace, bool) {
	return admin.FindNamespace(p.namespaces, p.hub.namespace)
}

// details requests data that changes slowly, or that an older leader does not support. Without a
// response the old data stays.
func (p *poller) details(ctx context.Context, now *live) {
	h := p.hub
	// Denied requests are logged, so requests without permission are not sent.
	if !h.may(leaseholdv1.AdminService_ListMembers_FullMethodName) {
		now.Members = []admin.Member{}
	} else if members, err := h.client.Members(ctx); err == nil {
		now.Members = members
	}
	if p.absent {
		return
	}
	if lookups, err := h.client.Lookups(ctx, h.namespace); err == nil {
		now.Lookups = steadyLookups(lookups)
	}
	if hot, err := h.client.HotKeys(ctx, h.namespace, hotKeys); err == nil {
		now.Hot = steadyHotKeys(hot)
	}
}

// publish broadcasts the changed sections. Owners are nil if unknown.
func (p *poller) publish(now *live, owners map[string]ownerRow) {
	h := p.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.state
	if p.absent && !s.absent {
		h.restart()
	}
	if d := h.adrift; now.Stale == nil && d != nil && !p.absent && time.Since(d.since) >= driftPatience {
		now.Stale = &stale{Since: d.since.UnixMilli(), Why: "changes of the lease table do not come: " + d.why}
	}
	s.live.At, s.live.Stale, s.absent = now.At, now.Stale, p.absent
	keep(&s.live.Status, &now.Status)
	keep(&s.live.Namespaces, &now.Namespaces)
	keep(&s.live.Moves, &now.Moves)
	keep(&s.live.Lookups, &now.Lookups)
	keep(&s.live.Hot, &now.Hot)
	keep(&s.live.Members, &now.Members)
	if owners != nil {
		now.Owners = changedOwners(s.owners, owners)
		s.owners = owners
	}
	h.publish("live", *now)
}

// keep stores a changed section for later viewers, and removes an unchanged one from the frame.
func keep[T any](state, news *T) {
	switch {
	case reflect.ValueOf(news).Elem().IsZero():
	case reflect.DeepEqual(*state, *news):
		*news = *new(T)
	default:
		*state = *news
	}
}
