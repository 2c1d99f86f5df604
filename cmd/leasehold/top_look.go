package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A topSnapshot is what "top" knows at one look, and a line of "top --json".
type topSnapshot struct {
	At        string           `json:"at"`              // when it was asked for, RFC 3339
	Stale     *staleDocument   `json:"stale,omitempty"` // all below is from before, and why
	Status    statusDocument   `json:"status"`
	Members   []memberDocument `json:"members,omitempty"` // if managers keep the store themselves
	Namespace string           `json:"namespace"`
	Policy    string           `json:"policy"`
	Owners    []topOwner       `json:"owners"`
	Vacant    float64          `json:"vacantShare"` // of the key space, 0 to 1
	Moves     movesDocument    `json:"moves"`
	HotKeys   []hotKeyDocument `json:"hotKeys"`
	Events    []eventDocument  `json:"events"` // the last ones, newest last

	at     time.Time
	absent bool // there is no such namespace
	paged  topPaged
}

// A staleDocument says that no manager answers.
type staleDocument struct {
	Since string `json:"since"` // when one last did, or when it was begun; RFC 3339
	Why   string `json:"why"`

	since time.Time
}

// A topOwner is late if it has not been heard for two renewals: it may be about to be
// taken for dead.
type topOwner struct {
	ownerDocument
	Late bool `json:"late"`
}

// A hotKeyDocument is a key that costs its owner much.
type hotKeyDocument struct {
	Key   string  `json:"key"`
	Rate  float64 `json:"rate"` // work per second
	Owner string  `json:"owner"`
}

const (
	topHotKeys = 10 // are asked for
	topEvents  = 100
	// rarely is every how many looks things are asked for that change slowly.
	rarely = 5
)

// A topLook looks at one namespace, again and again. It is for one goroutine.
type topLook struct {
	topWish
	log   *topLog
	looks int

	// What is not asked for at every look.
	configs []*leaseholdv1.NamespaceConfig
	members []memberDocument
	hot     map[string][]hotKeyDocument
	paged   topPaged
	pagedAt uint64 // the LSN at which it was asked for
}

// look asks one manager for everything. What only newer managers know is left out if
// this one is older. A manager that knows no leader is as good as one that is away.
func (l *topLook) look(ctx context.Context, to admin) (*topSnapshot, error) {
	answer, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
	if err != nil {
		return nil, err
	}
	if why := answer.GetProblem(); why != "" {
		return nil, leasehold.Errorf("", leasehold.Unavailable, "", "%s", why)
	}
	if l.log == nil {
		l.log = &topLog{}
	}
	l.log.leaders(answer.GetLeaderships())
	now := time.Now()
	s := &topSnapshot{
		Moves: movesJSON(l.namespace, nil),
		At:    now.Format(time.RFC3339Nano), at: now, Status: statusJSON(answer),
		Namespace: l.choose(answer.GetNamespaces()), Owners: []topOwner{}, HotKeys: []hotKeyDocument{},
	}
	if l.looks%rarely == 0 {
		l.slow(ctx, to)
	}
	l.looks++
	s.Members = l.members
	if err := l.within(ctx, to, s); err != nil {
		return nil, err
	}
	s.Events = l.log.tail(s.Namespace, topEvents)
	return s, nil
}

// choose returns which namespace is meant.
func (l *topLook) choose(there []*leaseholdv1.NamespaceStatus) string {
	if l.namespace == "" && len(there) > 0 {
		first := slices.MinFunc(there, func(a, b *leaseholdv1.NamespaceStatus) int { return cmp.Compare(a.GetName(), b.GetName()) })
		l.namespace = first.GetName()
	}
	return l.namespace
}

// slow asks for what changes slowly. What is not answered is left as it was: not all
// managers keep a store of their own.
func (l *topLook) slow(ctx context.Context, to admin) {
	if all, err := namespaces(ctx, to); err == nil {
		l.configs = all
	}
	if answer, err := to.ListMembers(ctx, &leaseholdv1.ListMembersRequest{Version: wire.Version}); err == nil {
		l.members = nil
		for _, m := range answer.GetMembers() {
			l.members = append(l.members, memberJSON(m))
		}
	}
}

// within asks about the namespace.
func (l *topLook) within(ctx context.Context, to admin, s *topSnapshot) error {
	n := s.status()
	if n == nil || !n.Ready {
		s.absent = n == nil
		return nil
	}
	owners, err := to.ListOwners(ctx, &leaseholdv1.ListOwnersRequest{Version: wire.Version, Namespace: s.Namespace})
	if err != nil {
		return err
	}
	config := configOf(l.configs, s.Namespace)
	s.Policy = config.GetPolicy()
	held := 0.0
	for _, o := range owners.GetOwners() {
		held += o.GetShare()
		s.Owners = append(s.Owners, topOwner{ownerJSON(o, owners.GetVersion() >= movesSince), late(o, config.GetTiming())})
	}
	if n.Vacant > 0 { // shares are rounded, and do not add up to quite 1
		s.Vacant = max(0, 1-held)
	}
	moves, err := to.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: s.Namespace})
	if err == nil {
		s.Moves = movesJSON(s.Namespace, moves)
	}
	s.HotKeys = l.hotKeys(ctx, to, s.Namespace)
	l.log.fill(ctx, to, s.Namespace)
	l.turnTo(ctx, to, s)
	return nil
}

func (l *topLook) hotKeys(ctx context.Context, to admin, namespace string) []hotKeyDocument {
	known, have := l.hot[namespace]
	if have && l.looks%rarely != 1 {
		return known
	}
	answer, err := to.ListHotKeys(ctx, &leaseholdv1.ListHotKeysRequest{Version: wire.Version, Namespace: namespace, Most: topHotKeys})
	if err != nil {
		return []hotKeyDocument{}
	}
	known = []hotKeyDocument{}
	for _, k := range answer.GetKeys() {
		known = append(known, hotKeyDocument{keyText(k.GetKey()), k.GetRate(), k.GetOwner()})
	}
	l.hot = map[string][]hotKeyDocument{namespace: known} // of the others nobody asks
	return known
}

// status is how the namespace fares, nil if there is none.
func (s *topSnapshot) status() *namespaceStatusDocument {
	for i := range s.Status.Namespaces {
		if s.Status.Namespaces[i].Name == s.Namespace {
			return &s.Status.Namespaces[i]
		}
	}
	return nil
}

func configOf(all []*leaseholdv1.NamespaceConfig, name string) *leaseholdv1.NamespaceConfig {
	for _, c := range all {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// late reports whether a member has not been heard for two renewals.
func late(o *leaseholdv1.OwnerStatus, t *leaseholdv1.Timing) bool {
	hold := float64(t.GetLease()) * t.GetDrift()
	return hold > 0 && o.GetState() == leaseholdv1.OwnerState_OWNER_STATE_MEMBER &&
		float64(o.GetPatience()) < hold-2*float64(t.GetRenew())
}
