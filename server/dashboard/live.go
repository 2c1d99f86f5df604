package dashboard

import (
	"cmp"
	"math"
	"net"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/admin"
)

// live is the polled data. Nil sections are unchanged.
type live struct {
	At    int64  `json:"at"`              // time of the poll, in milliseconds since 1970
	Stale *stale `json:"stale,omitempty"` // set if the displayed state is stale

	Status     *admin.Status     `json:"status,omitempty"`
	Namespaces []admin.Namespace `json:"namespaces,omitzero"` // their configurations
	Owners     *ownerChanges     `json:"owners,omitempty"`
	Moves      *admin.Moves      `json:"moves,omitempty"`
	Lookups    *admin.Lookups    `json:"lookups,omitempty"`
	Hot        []admin.HotKey    `json:"hot,omitzero"`
	Members    []admin.Member    `json:"members,omitzero"`
}

// A stale reports that the displayed state is stale.
type stale struct {
	Since int64  `json:"since"` // the last complete poll, in milliseconds since 1970; 0 if there was none
	Why   string `json:"why"`
}

const (
	// mostRows bounds the lists that are sent as a whole. The page shows the total number.
	mostRows = 200
	// heardLately is the maximum silence of a live manager, which sends a message every five seconds.
	heardLately = 15 * time.Second
)

// The functions below round values that change with every poll, so that a section is sent only after
// a significant change, and truncate long lists.

func steadyStatus(s admin.Status) *admin.Status {
	s.LedFor = 0
	for i := range s.Managers {
		m := &s.Managers[i]
		m.HTTP = reachable(m.HTTP, m.Addr)
		if time.Duration(m.HeardAgo) > heardLately {
			m.HeardAgo = round(m.HeardAgo, 5*time.Second)
		} else {
			m.HeardAgo = 0
		}
	}
	return &s
}

func steadyMoves(all admin.Moves) *admin.Moves {
	all.Moves = all.Moves[:min(mostRows, len(all.Moves))]
	for i := range all.Moves {
		m := &all.Moves[i]
		m.Age, m.Patience = round(m.Age, time.Second), 0
	}
	return &all
}

// steadyLookups sorts the lookups by lag, the largest first.
func steadyLookups(all admin.Lookups) *admin.Lookups {
	for i := range all.Lookups {
		l := &all.Lookups[i]
		l.Connected, l.HeardAgo = round(l.Connected, time.Second), round(l.HeardAgo, time.Second)
	}
	slices.SortStableFunc(all.Lookups, func(a, b admin.Lookup) int {
		return cmp.Or(cmp.Compare(b.Behind, a.Behind), cmp.Compare(b.HeardAgo, a.HeardAgo))
	})
	all.Lookups = all.Lookups[:min(mostRows, len(all.Lookups))]
	return &all
}

func steadyHotKeys(keys []admin.HotKey) []admin.HotKey {
	for i := range keys {
		keys[i].Rate = brief(keys[i].Rate)
	}
	return keys
}

func round(s admin.Seconds, to time.Duration) admin.Seconds {
	return admin.Seconds(time.Duration(s).Round(to))
}

// brief rounds a number to three digits.
func brief(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// reachable returns the address of the dashboard of a manager; "" if unknown. A wildcard address gets
// the host of the manager's gRPC address.
func reachable(http, addr string) string {
	host, port, err := net.SplitHostPort(http)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, _, err = net.SplitHostPort(addr); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(host, port)
}

// ownerChanges are new or changed sessions of owners, and ended ones.
type ownerChanges struct {
	Set  []ownerRow `json:"set"`
	Gone []string   `json:"gone"` // sessions
}

// An ownerRow is a session of an owner. Its patience is 0 unless it is late or silent.
type ownerRow struct {
	admin.Owner
	Late bool `json:"late"`
}

func rowOf(o admin.Owner, n admin.Namespace) ownerRow {
	o.Share, o.Load = brief(o.Share), brief(o.Load)
	row := ownerRow{o, !o.Suspended && o.Late(n)}
	if row.Late || o.State == admin.OwnerSilent {
		row.Patience = round(o.Patience, time.Second)
	} else {
		row.Patience = 0
	}
	return row
}

func (r ownerRow) equal(other ownerRow) bool {
	same := r.CanMoveState() == other.CanMoveState() && r.IsSupervised() == other.IsSupervised()
	r.MovesState, other.MovesState, r.Supervised, other.Supervised = nil, nil, nil, nil
	return same && r == other
}

// changedOwners returns the difference of two sets of sessions; nil if they are equal.
func changedOwners(before, now map[string]ownerRow) *ownerChanges {
	out := &ownerChanges{Set: []ownerRow{}, Gone: []string{}}
	for session, o := range now {
		if old, known := before[session]; !known || !old.equal(o) {
			out.Set = append(out.Set, o)
		}
	}
	for session := range before {
		if _, still := now[session]; !still {
			out.Gone = append(out.Gone, session)
		}
	}
	if len(out.Set) == 0 && len(out.Gone) == 0 {
		return nil
	}
	return out
}
