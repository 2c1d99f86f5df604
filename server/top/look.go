package top

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/cli"
	"github.com/leasehold-dev/leasehold/server/console"
)

// A Snapshot is the state that "top" displays, and a line of "top --json".
type Snapshot struct {
	At        time.Time      `json:"at"`              // of the request
	Stale     *staleDocument `json:"stale,omitempty"` // set if the rest is stale
	Status    admin.Status   `json:"status"`
	Members   []admin.Member `json:"members,omitempty"` // only with embedded stores
	Namespace string         `json:"namespace"`
	Policy    string         `json:"policy"`
	Owners    []topOwner     `json:"owners"`
	Vacant    float64        `json:"vacantShare"` // of the key space, 0 to 1
	Moves     admin.Moves    `json:"moves"`
	HotKeys   []admin.HotKey `json:"hotKeys"`
	Events    []admin.Event  `json:"events"` // newest last

	absent bool // the namespace does not exist
	Paged  topPaged
}

// A staleDocument reports that no manager responds.
type staleDocument struct {
	Since time.Time `json:"since"` // the last response, or the start
	Why   string    `json:"why"`
}

// A topOwner is late if it has missed two renewals, and may soon expire.
type topOwner struct {
	admin.Owner
	Late bool `json:"late"`
}

const (
	topHotKeys = 10 // requested per poll
	topEvents  = 100
	// slowPolls is the number of polls per request of data that changes slowly.
	slowPolls = 5
)

// A topLook polls one namespace. It is for one goroutine.
type topLook struct {
	Wish
	log   *Log
	looks int

	// Data that is not requested by every poll.
	configs []admin.Namespace
	members []admin.Member
	hot     map[string][]admin.HotKey
	paged   topPaged
	pagedAt leasehold.LSN // the LSN at the request of paged
}

// look polls everything. Data that an old manager does not support is omitted. A manager without
// a leader counts as unavailable.
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
	if l.looks%slowPolls == 0 {
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

// statusOfLed returns the status of a manager that has a leader.
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

func (l *topLook) choose(there []admin.NamespaceStatus) string {
	if l.Namespace == "" && len(there) > 0 {
		l.Namespace = slices.MinFunc(there, func(a, b admin.NamespaceStatus) int { return cmp.Compare(a.Name, b.Name) }).Name
	}
	return l.Namespace
}

// slow requests data that changes slowly. It keeps the old data without a response: not all
// managers have an embedded store.
func (l *topLook) slow(ctx context.Context, from *admin.Client) {
	if all, err := from.Namespaces(ctx); err == nil {
		l.configs = all
	}
	if members, err := from.Members(ctx); err == nil {
		l.members = members
	}
}

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
	config, _ := admin.FindNamespace(l.configs, s.Namespace)
	s.Policy = config.Policy
	held := 0.0
	for _, o := range owners.Owners {
		held += o.Share
		s.Owners = append(s.Owners, topOwner{o, o.Late(config)})
	}
	if n.Vacant > 0 { // shares are rounded, so their sum is not exactly 1
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
	if have && l.looks%slowPolls != 1 {
		return known
	}
	known, err := from.HotKeys(ctx, namespace, topHotKeys)
	if err != nil {
		return []admin.HotKey{}
	}
	l.hot = map[string][]admin.HotKey{namespace: known} // only the current namespace is polled
	return known
}

func (s *Snapshot) status() *admin.NamespaceStatus {
	if n, there := s.Status.Namespace(s.Namespace); there {
		return &n
	}
	return nil
}

// topHistory is the maximum number of changes in the history of a key.
const topHistory = 100

// turnTo requests the data of the current page. Tables and histories, which may be large, are
// requested again only after a change, and not in every poll.
func (l *topLook) turnTo(ctx context.Context, from *admin.Client, s *Snapshot) {
	known := l.paged
	wish := Wish{s.Namespace, l.Page, l.Key}
	lsn := s.status().LSN
	fresh := known.Of == wish && known.Problem == "" && (l.pagedAt == lsn || l.looks%slowPolls != 1)
	p := topPaged{Of: wish}
	var err error
	switch {
	case l.Page == PageEvents:
		p.Log = l.log.Tail(s.Namespace, MostLogged)
	case l.Page == PageLookups:
		p.lookups, err = from.Lookups(ctx, s.Namespace)
		slices.SortStableFunc(p.lookups.Lookups, func(a, b admin.Lookup) int { return cmp.Compare(b.Behind, a.Behind) })
	case fresh:
		s.Paged = known
		return
	case l.Page == PageRanges:
		var all admin.Ranges
		all, err = from.Ranges(ctx, s.Namespace, "")
		p.Ranges = all.Ranges
	case l.Page == PageKey:
		p.Found, err = findKey(ctx, from, s.Namespace, l.Key)
	}
	if err != nil {
		p.Problem = cli.OneLine(err)
	}
	s.Paged, l.paged, l.pagedAt = p, p, lsn
}

func findKey(ctx context.Context, from *admin.Client, namespace, text string) (*topFound, error) {
	key, err := keyTyped(text)
	if err != nil {
		return nil, err
	}
	found, err := from.Find(ctx, namespace, key.Key)
	if err != nil {
		return nil, err
	}
	history, err := from.History(ctx, namespace, key.Key, topHistory, time.Time{})
	return &topFound{Key: key, Held: found.Range, History: history}, err
}

// A Log holds the newest events of all namespaces, from the watch and from the journal. Its methods
// are safe for concurrent use.
type Log struct {
	mu     sync.Mutex
	Events []admin.Event   // by time, newest last
	filled map[string]bool // namespaces whose journal was read
}

// MostLogged bounds the number of events.
const MostLogged = 1000

// Add adds events and drops duplicates: the journal and the watch contain the same changes, and
// every watch starts with the current leader.
func (l *Log) Add(events ...admin.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.insert(e)
	}
	if over := len(l.Events) - MostLogged; over > 0 {
		l.Events = slices.Delete(l.Events, 0, over)
	}
}

func (l *Log) insert(e admin.Event) {
	at := len(l.Events)
	for at > 0 && l.Events[at-1].At.After(e.At) {
		at--
	}
	switch {
	case e.Change != nil && slices.ContainsFunc(l.Events, func(other admin.Event) bool { return sameChange(e, other) }):
		return
	case e.Leader != nil:
		if before := nextLeader(slices.Backward(l.Events[:at])); before >= 0 && *l.Events[before].Leader == *e.Leader {
			return // the leader has not changed
		}
		// The same leader at an earlier time replaces the later entry.
		if after := nextLeader(slices.All(l.Events[at:])); after >= 0 && *l.Events[at+after].Leader == *e.Leader {
			l.Events = slices.Delete(l.Events, at+after, at+after+1)
		}
	}
	l.Events = slices.Insert(l.Events, at, e)
}

func nextLeader(events iter.Seq2[int, admin.Event]) int {
	for i, e := range events {
		if e.Leader != nil {
			return i
		}
	}
	return -1
}

// sameChange reports whether two events describe the same change.
func sameChange(e, other admin.Event) bool {
	return e.Change != nil && other.Change != nil && e.Namespace == other.Namespace && e.Change.LSN == other.Change.LSN
}

func (l *Log) take(e admin.Event) {
	if e.Missed > 0 {
		l.gap(console.Counted(int(e.Missed), "event") + " missed: the reader was too slow")
	}
	if e.Type == admin.EventGap {
		l.gap(e.Text)
		return
	}
	l.Add(e)
}

// gap records that events were missed. The next fill reads them from the journal.
func (l *Log) gap(why string) {
	l.Add(admin.Event{Type: admin.EventGap, Text: why, At: time.Now()})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filled = nil
}

// fill reads the journal of a namespace unless that is done already.
func (l *Log) fill(ctx context.Context, from *admin.Client, namespace string) {
	l.mu.Lock()
	filled := l.filled[namespace]
	l.mu.Unlock()
	if filled {
		return
	}
	changes, _, err := from.Changes(ctx, namespace, 0, topEvents)
	if err != nil {
		return // the manager is too old, or the next poll retries
	}
	var past []admin.Event
	for _, c := range slices.Backward(changes) {
		past = append(past, c.Event(namespace))
	}
	l.Add(past...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.filled == nil {
		l.filled = make(map[string]bool)
	}
	l.filled[namespace] = true
}

// Leaders adds past leaders.
func (l *Log) Leaders(list []admin.Leadership) {
	var past []admin.Event
	for _, s := range slices.Backward(list) {
		past = append(past, s.Event())
	}
	l.Add(past...)
}

// Tail returns the last events of a namespace and of the group.
func (l *Log) Tail(namespace string, most int) []admin.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []admin.Event{}
	for _, e := range slices.Backward(l.Events) {
		if e.Namespace == "" || e.Namespace == namespace {
			if out = append(out, e); len(out) == most {
				break
			}
		}
	}
	slices.Reverse(out)
	return out
}
