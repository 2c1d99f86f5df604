package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	// pollEvery is how often it is asked how things are.
	pollEvery = time.Second
	// pollPatience is how long all answers may take together.
	pollPatience = 3 * time.Second
	// rarely is every how many times things are asked for that change slowly.
	rarely = 3
	// hotKeys is how many hot keys are shown.
	hotKeys = 50
)

// poll asks how things are until the context ends.
func (h *hub) poll(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	p := &poller{hub: h, sent: make(map[string][]byte)}
	for n := 0; ; n++ {
		p.ask(ctx, n%rarely == 0)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// A poller asks, and finds out what is new. It is for one goroutine.
type poller struct {
	hub     *hub
	sent    map[string][]byte                       // sections as they were last, encoded
	configs map[string]*leaseholdv1.NamespaceConfig // as they were last
	touch   int64                                   // when all was last known
	absent  bool                                    // there is no such namespace
}

// ask asks for everything, and publishes what is new: at least that we still live.
func (p *poller) ask(ctx context.Context, all bool) {
	asking, cancel := context.WithTimeout(ctx, pollPatience)
	defer cancel()
	now := live{At: time.Now().UnixMilli()}
	owners, err := p.essentials(asking, &now, all)
	if err == nil && all {
		p.details(asking, &now)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		now.Stale = &staleJSON{Since: p.touch, Why: err.Error()}
	} else {
		p.touch = now.At
	}
	p.publish(&now, owners)
}

// essentials asks for what changes all the time. The error says why what is shown is
// old.
func (p *poller) essentials(ctx context.Context, now *live, all bool) (map[string]ownerJSON, error) {
	h := p.hub
	status, err := h.admin.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		return nil, wire.ToError(err)
	}
	if all || p.configs[h.namespace] == nil {
		p.configure(ctx)
	}
	now.Status = statusOf(status, p.configs)
	if status.GetProblem() != "" {
		return nil, leasehold.Errorf("look", leasehold.ErrUnavailable, status.GetManager(), "%s", status.GetProblem())
	}
	if p.absent = !has(status, h.namespace); p.absent {
		return nil, nil // that is for the page to say
	}
	answer, err := h.admin.ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: h.namespace})
	if err != nil {
		return nil, wire.ToError(err)
	}
	owners := make(map[string]ownerJSON, len(answer.GetOwners()))
	for _, o := range answer.GetOwners() {
		row := ownerOf(o, p.configs[h.namespace])
		owners[row.ID] = row
	}
	moves, err := h.admin.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: h.namespace})
	if err != nil {
		return nil, wire.ToError(err)
	}
	now.Moves = movesOf(moves)
	return owners, nil
}

func has(s *leaseholdv1.GetStatusResponse, namespace string) bool {
	return slices.ContainsFunc(s.GetNamespaces(), func(n *leaseholdv1.NamespaceStatus) bool { return n.GetName() == namespace })
}

// configure reads how namespaces are configured. If it cannot, that is as it was last.
func (p *poller) configure(ctx context.Context) {
	answer, err := p.hub.admin.ListNamespaces(ctx, &leaseholdv1.ListNamespacesRequest{Version: wire.Version})
	if err != nil {
		return
	}
	p.configs = make(map[string]*leaseholdv1.NamespaceConfig, len(answer.GetNamespaces()))
	for _, c := range answer.GetNamespaces() {
		p.configs[c.GetName()] = c
	}
}

// details asks for what changes slowly, or what an older leader does not know. What is
// not answered is left as it was.
func (p *poller) details(ctx context.Context, now *live) {
	h := p.hub
	// Who may not know is not told, and does not ask again and again.
	if !h.may(leaseholdv1.AdminService_ListMembers_FullMethodName) {
		now.Members = &membersJSON{}
	} else if members, err := h.admin.ListMembers(ctx, &leaseholdv1.ListMembersRequest{Version: wire.Version}); err == nil {
		now.Members = membersOf(members)
	}
	if p.absent {
		return
	}
	if lookups, err := h.admin.ListLookups(ctx, &leaseholdv1.ListLookupsRequest{Version: wire.Version, Namespace: h.namespace}); err == nil {
		now.Lookups = lookupsOf(lookups)
	}
	if hot, err := h.admin.ListHotKeys(ctx, &leaseholdv1.ListHotKeysRequest{Version: wire.Version, Namespace: h.namespace, Most: hotKeys}); err == nil {
		now.Hot = hotOf(hot)
	}
}

// publish tells everybody what is new. Owners are nil if they are not known.
func (p *poller) publish(now *live, owners map[string]ownerJSON) {
	h := p.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.state
	if p.absent && !s.absent {
		h.forget()
	}
	if d := h.adrift; now.Stale == nil && d != nil && !p.absent && time.Since(d.since) >= driftPatience {
		now.Stale = &staleJSON{Since: d.since.UnixMilli(), Why: "changes of the lease table do not come: " + d.why}
	}
	s.live.At, s.live.Stale, s.absent = now.At, now.Stale, p.absent
	keep(p, "status", &s.live.Status, &now.Status)
	keep(p, "moves", &s.live.Moves, &now.Moves)
	keep(p, "lookups", &s.live.Lookups, &now.Lookups)
	keep(p, "hot", &s.live.Hot, &now.Hot)
	keep(p, "members", &s.live.Members, &now.Members)
	if owners != nil {
		now.Owners = changedOwners(s.owners, owners)
		s.owners = owners
	}
	h.publish("live", *now)
}

// keep remembers a section that is new for those who come later, and leaves it out of
// the news if it is not.
func keep[T any](p *poller, name string, state, news **T) {
	if *news == nil {
		return
	}
	text, err := json.Marshal(*news)
	if err != nil {
		panic(err) // numbers, strings, and structs of them
	}
	if bytes.Equal(text, p.sent[name]) {
		*news = nil
		return
	}
	p.sent[name] = text
	*state = *news
}
