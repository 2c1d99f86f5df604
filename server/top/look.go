package top

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Snapshot is what "top" knows at one look, and a line of "top --json".
type Snapshot struct {
	At        time.Time      `json:"at"`              // when it was asked for
	Stale     *staleDocument `json:"stale,omitempty"` // all below is from before, and why
	Status    admin.Status   `json:"status"`
	Members   []admin.Member `json:"members,omitempty"` // if managers keep the store themselves
	Namespace string         `json:"namespace"`
	Policy    string         `json:"policy"`
	Owners    []topOwner     `json:"owners"`
	Vacant    float64        `json:"vacantShare"` // of the key space, 0 to 1
	Moves     admin.Moves    `json:"moves"`
	HotKeys   []admin.HotKey `json:"hotKeys"`
	Events    []admin.Event  `json:"events"` // the last ones, newest last

	absent bool // there is no such namespace
	Paged  topPaged
}

// A staleDocument says that no manager answers.
type staleDocument struct {
	Since time.Time `json:"since"` // when one last did, or when it was begun
	Why   string    `json:"why"`
}

// A topOwner is late if it has not been heard for two renewals: it may be about to be
// taken for dead.
type topOwner struct {
	admin.Owner
	Late bool `json:"late"`
}

const (
	topHotKeys = 10 // are asked for
	topEvents  = 100
	// rarely is every how many looks things are asked for that change slowly.
	rarely = 5
)

// A topLook looks at one namespace, again and again. It is for one goroutine.
type topLook struct {
	Wish
	log   *Log
	looks int

	// What is not asked for at every look.
	configs []admin.Namespace
	members []admin.Member
	hot     map[string][]admin.HotKey
	paged   topPaged
	pagedAt leasehold.LSN // the LSN at which it was asked for
}

// look asks for everything. What only newer managers know is left out if this one is older. A manager
// that knows no leader is as good as one that is away.
func (l *topLook) look(ctx context.Context, from *admin.Client) (*Snapshot, error) {
	status, err := statusOfLed(ctx, from)
	if err != nil {
		return nil, err
	}
	if l.log == nil {
		l.log = &Log{}
	}
	l.log.Leaders(status.Terms)
	s := &Snapshot{
		At: time.Now(), Status: status, Namespace: l.choose(status.Namespaces),
		Owners: []topOwner{}, HotKeys: []admin.HotKey{}, Moves: admin.Moves{Moves: []admin.Move{}},
	}
	s.Moves.Namespace = s.Namespace
	if l.looks%rarely == 0 {
		l.slow(ctx, from)
	}
	l.looks++
	s.Members = l.members
	if err := l.within(ctx, from, s); err != nil {
		return nil, err
	}
	s.Events = l.log.Tail(s.Namespace, topEvents)
	return s, nil
}

// statusOfLed returns the status from a manager that knows a leader.
func statusOfLed(ctx context.Context, from *admin.Client) (status admin.Status, err error) {
	err = from.Do(ctx, func(ctx context.Context, to cli.Service) error {
		answer, err := to.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		if err == nil && answer.GetProblem() != "" {
			return leasehold.Errorf("", leasehold.ErrUnavailable, "", "%s", answer.GetProblem())
		}
		status = admin.StatusOf(answer)
		return err
	})
	return status, err
}

// choose returns which namespace is meant.
func (l *topLook) choose(there []admin.NamespaceStatus) string {
	if l.Namespace == "" && len(there) > 0 {
		l.Namespace = slices.MinFunc(there, func(a, b admin.NamespaceStatus) int { return cmp.Compare(a.Name, b.Name) }).Name
	}
	return l.Namespace
}

// slow asks for what changes slowly. What is not answered is left as it was: not all
// managers keep a store of their own.
func (l *topLook) slow(ctx context.Context, from *admin.Client) {
	if all, err := from.Namespaces(ctx); err == nil {
		l.configs = all
	}
	if members, err := from.Members(ctx); err == nil {
		l.members = members
	}
}

// within asks about the namespace.
func (l *topLook) within(ctx context.Context, from *admin.Client, s *Snapshot) error {
	n, there := s.Status.Namespace(s.Namespace)
	if !n.Ready {
		s.absent = !there
		return nil
	}
	owners, err := from.Owners(ctx, s.Namespace)
	if err != nil {
		return err
	}
	config := configOf(l.configs, s.Namespace)
	s.Policy = config.Policy
	held := 0.0
	for _, o := range owners.Owners {
		held += o.Share
		s.Owners = append(s.Owners, topOwner{o, o.Late(config)})
	}
	if n.Vacant > 0 { // shares are rounded, and do not add up to quite 1
		s.Vacant = max(0, 1-held)
	}
	if moves, err := from.Moves(ctx, s.Namespace); err == nil {
		s.Moves = moves
	}
	s.HotKeys = l.hotKeys(ctx, from, s.Namespace)
	l.log.fill(ctx, from, s.Namespace)
	l.turnTo(ctx, from, s)
	return nil
}

func (l *topLook) hotKeys(ctx context.Context, from *admin.Client, namespace string) []admin.HotKey {
	known, have := l.hot[namespace]
	if have && l.looks%rarely != 1 {
		return known
	}
	known, err := from.HotKeys(ctx, namespace, topHotKeys)
	if err != nil {
		return []admin.HotKey{}
	}
	l.hot = map[string][]admin.HotKey{namespace: known} // of the others nobody asks
	return known
}

// status is how the namespace fares, nil if there is none.
func (s *Snapshot) status() *admin.NamespaceStatus {
	if n, there := s.Status.Namespace(s.Namespace); there {
		return &n
	}
	return nil
}

func configOf(all []admin.Namespace, name string) admin.Namespace {
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	return admin.Namespace{}
}
