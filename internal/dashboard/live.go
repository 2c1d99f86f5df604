package dashboard

import (
	"encoding/hex"
	"math"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// live is what is asked for again and again. Sections that are nil are as they were.
type live struct {
	At    int64      `json:"at"`              // when it was asked for, in milliseconds since 1970
	Stale *staleJSON `json:"stale,omitempty"` // what is shown is old, and why

	Status  *statusJSON  `json:"status,omitempty"`
	Owners  *ownersJSON  `json:"owners,omitempty"`
	Moves   *movesJSON   `json:"moves,omitempty"`
	Lookups *lookupsJSON `json:"lookups,omitempty"`
	Hot     *hotJSON     `json:"hot,omitempty"`
	Members *membersJSON `json:"members,omitempty"`
}

// A staleJSON says that the manager is out of touch with what it shows.
type staleJSON struct {
	Since int64  `json:"since"` // when it was last in touch, in milliseconds since 1970; 0 if it never was
	Why   string `json:"why"`
}

// A statusJSON is how the group and its namespaces fare.
type statusJSON struct {
	Manager    string           `json:"manager"`
	Build      string           `json:"build"`
	Store      string           `json:"store"`
	Leader     string           `json:"leader"`
	Term       string           `json:"term"`
	Problem    string           `json:"problem"`
	Warnings   []string         `json:"warnings"`
	Terms      []leadershipJSON `json:"terms"`    // who has led, the newest first
	Managers   []managerJSON    `json:"managers"` // of the group, the leader first
	Namespaces []namespaceJSON  `json:"namespaces"`
}

type leadershipJSON struct {
	At     int64  `json:"at"`
	Leader string `json:"leader"`
	Term   string `json:"term"`
}

type namespaceJSON struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Problem string `json:"problem"`
	Lull    string `json:"lull"`
	Policy  string `json:"policy"`
	Lease   int64  `json:"lease"` // milliseconds
	LSN     string `json:"lsn"`
	Newest  string `json:"newest"` // generation
	Owners  uint32 `json:"owners"`
	Ranges  uint32 `json:"ranges"`
	Vacant  uint32 `json:"vacant"`
	Lookups uint32 `json:"lookups"`
	Moves   uint32 `json:"moves"`
}

func statusOf(s *leaseholdv1.GetStatusResponse, configs map[string]*leaseholdv1.NamespaceConfig) *statusJSON {
	out := &statusJSON{
		Manager: s.GetManager(), Build: s.GetBuild(), Store: s.GetStore(), Leader: s.GetLeader(), Term: decimal(s.GetTerm()),
		Problem: s.GetProblem(), Warnings: s.GetWarnings(), Terms: []leadershipJSON{}, Managers: managersOf(s), Namespaces: []namespaceJSON{},
	}
	for _, l := range s.GetLeaderships() {
		out.Terms = append(out.Terms, leadershipJSON{l.GetAt().AsTime().UnixMilli(), l.GetLeader(), decimal(l.GetTerm())})
	}
	for _, n := range s.GetNamespaces() {
		c := configs[n.GetName()]
		out.Namespaces = append(out.Namespaces, namespaceJSON{
			Name: n.GetName(), Ready: n.GetReady(), Problem: n.GetProblem(), Lull: n.GetLull(),
			Policy: c.GetPolicy(), Lease: time.Duration(c.GetTiming().GetLease()).Milliseconds(),
			LSN: decimal(n.GetLsn()), Newest: decimal(n.GetNewestGeneration()), Owners: n.GetOwners(), Ranges: n.GetRanges(),
			Vacant: n.GetVacant(), Lookups: n.GetLookups(), Moves: n.GetMoves(),
		})
	}
	return out
}

// An ownersJSON is sessions of owners that are new or have changed, and those that are
// gone.
type ownersJSON struct {
	Set  []ownerJSON `json:"set"`
	Gone []string    `json:"gone"` // their ids
}

// An ownerJSON is a session as the leader sees it.
type ownerJSON struct {
	ID       string  `json:"id"` // of the session
	Name     string  `json:"name"`
	Addr     string  `json:"addr"`
	State    string  `json:"state"` // member, suspended, late, draining, leaving, joining, waiting or silent
	Weight   float64 `json:"weight"`
	Leases   uint32  `json:"leases"`
	Share    float64 `json:"share"`
	Load     float64 `json:"load"`
	Draining bool    `json:"draining"`
	Mover    bool    `json:"mover"`
	In       uint32  `json:"in"`
	Out      uint32  `json:"out"`
	Patience float64 `json:"patience"` // seconds, if it is not heard as it should be; else 0
}

// ownerOf describes a session. An owner is late if it has not been heard for two
// renewals: it may be about to be taken for dead.
func ownerOf(o *leaseholdv1.OwnerStatus, c *leaseholdv1.NamespaceConfig) ownerJSON {
	h, t := o.GetHolder(), c.GetTiming()
	out := ownerJSON{
		ID: hex.EncodeToString(h.GetSession()[:min(8, len(h.GetSession()))]), Name: h.GetOwner(), Addr: h.GetAddr(), Weight: h.GetWeight(),
		Leases: o.GetLeases(), Share: brief(o.GetShare()), Load: brief(o.GetLoad()), Draining: o.GetDraining(),
		Mover: o.GetMovesState(), In: o.GetMovesIn(), Out: o.GetMovesOut(),
	}
	hold := float64(t.GetLease()) * t.GetDrift()
	late := hold > 0 && float64(o.GetPatience()) < hold-2*float64(t.GetRenew())
	if o.GetSuspended() {
		out.State = "suspended"
		return out
	}
	switch o.GetState() {
	case leaseholdv1.OwnerState_OWNER_STATE_GREETED:
		out.State = "joining"
	case leaseholdv1.OwnerState_OWNER_STATE_WAITING:
		out.State = "waiting"
	case leaseholdv1.OwnerState_OWNER_STATE_SILENT:
		out.State = "silent"
	case leaseholdv1.OwnerState_OWNER_STATE_MEMBER, leaseholdv1.OwnerState_OWNER_STATE_UNSPECIFIED:
		switch {
		case late:
			out.State = "late"
		case o.GetParting():
			out.State = "leaving"
		case o.GetDraining():
			out.State = "draining"
		default:
			out.State = "member"
		}
	}
	if out.State == "late" || out.State == "silent" {
		out.Patience = math.Round(time.Duration(o.GetPatience()).Seconds())
	}
	return out
}

// brief keeps three digits of a number: more changes all the time, and nobody sees it.
func brief(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	scale := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// changedOwners returns what is new in sessions compared with those before, by id; nil
// if nothing is.
func changedOwners(before, now map[string]ownerJSON) *ownersJSON {
	out := &ownersJSON{Set: []ownerJSON{}, Gone: []string{}}
	for id, o := range now {
		if old, known := before[id]; !known || old != o {
			out.Set = append(out.Set, o)
		}
	}
	for id := range before {
		if _, still := now[id]; !still {
			out.Gone = append(out.Gone, id)
		}
	}
	if len(out.Set) == 0 && len(out.Gone) == 0 {
		return nil
	}
	return out
}
