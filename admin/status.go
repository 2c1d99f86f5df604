package admin

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Status is the state of the group as one manager reports it.
type Status struct {
	Leader     string            `json:"leader"` // "" without a leader
	Term       leasehold.Term    `json:"term,string"`
	LedFor     Seconds           `json:"ledForSeconds"` // 0 if it is not known
	Manager    string            `json:"manager"`       // the one that responded
	Build      string            `json:"build"`
	Store      string            `json:"store"`              // for people, such as "etcd, embedded, 3 members"
	Problem    string            `json:"problem,omitempty"`  // why the status is incomplete
	Warnings   []string          `json:"warnings,omitempty"` // problems of a group that serves
	Namespaces []NamespaceStatus `json:"namespaces"`
	Terms      []Leadership      `json:"terms,omitempty"`    // newest first; at most 64
	Managers   []Manager         `json:"managers,omitempty"` // of the group; the leader first

	// Of the manager that responded; 0 if its version does not report them.
	TTL      Seconds `json:"ttlSeconds,omitzero"`      // after which leadership expires without a renewal
	Failover Seconds `json:"failoverSeconds,omitzero"` // how long there is no leader after a crash of the leader
}

// A NamespaceStatus is the state of a namespace as the leader reports it.
type NamespaceStatus struct {
	Name             string               `json:"name"`
	Ready            bool                 `json:"ready"`
	Problem          string               `json:"problem,omitempty"` // why it is not ready, or a problem of a ready one
	LSN              leasehold.LSN        `json:"lsn,string"`
	NewestGeneration leasehold.Generation `json:"newestGeneration,string"`
	Owners           uint32               `json:"owners"`
	Ranges           uint32               `json:"ranges"`
	Vacant           uint32               `json:"vacant"`         // ranges without an owner
	Lookups          uint32               `json:"lookups"`        // connected to the manager that responded
	Moves            uint32               `json:"moves"`          // of state, in progress
	Lull             string               `json:"lull,omitempty"` // why a load-based policy does not balance now
}

// A Leadership is a change of the leader.
type Leadership struct {
	At     time.Time      `json:"at"`     // on the clock of the manager that observed it
	Leader string         `json:"leader"` // "": there was none
	Term   leasehold.Term `json:"term,string"`
}

// A Manager is one manager of the group.
type Manager struct {
	Addr     string  `json:"addr"`
	Leads    bool    `json:"leads"`
	Heard    bool    `json:"heard"` // the leader has received a message from it
	HeardAgo Seconds `json:"heardAgoSeconds"`
	Build    string  `json:"build,omitempty"`
	HTTP     string  `json:"http,omitempty"` // where it serves HTTP
}

// Status returns the state of the group. Without a leader, it is the state that the responding manager
// has.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return read(ctx, c, func(ctx context.Context, s service) (Status, error) {
		answer, err := s.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		return StatusOf(answer), err
	})
}

// StatusOf converts a response of the service.
func StatusOf(answer *leaseholdv1.GetStatusResponse) Status {
	return Status{
		Leader: answer.GetLeader(), Term: leasehold.Term(answer.GetTerm()), LedFor: Seconds(answer.GetLedFor()),
		Manager: answer.GetManager(), Build: answer.GetBuild(), Store: answer.GetStore(),
		Problem: answer.GetProblem(), Warnings: answer.GetWarnings(),
		Namespaces: convert(answer.GetNamespaces(), namespaceStatusOf),
		Terms: convert(answer.GetLeaderships(), func(l *leaseholdv1.Leadership) Leadership {
			return Leadership{l.GetAt().AsTime(), l.GetLeader(), leasehold.Term(l.GetTerm())}
		}),
		Managers: convert(answer.GetManagers(), func(m *leaseholdv1.ManagerStatus) Manager {
			return Manager{m.GetAddr(), m.GetLeads(), m.GetHeard(), Seconds(m.GetHeardAgo()), m.GetBuild(), m.GetHttp()}
		}),
		TTL: Seconds(answer.GetTtl()), Failover: Seconds(answer.GetFailover()),
	}
}

func namespaceStatusOf(n *leaseholdv1.NamespaceStatus) NamespaceStatus {
	return NamespaceStatus{
		Name: n.GetName(), Ready: n.GetReady(), Problem: n.GetProblem(), LSN: leasehold.LSN(n.GetLsn()),
		NewestGeneration: leasehold.Generation(n.GetNewestGeneration()), Owners: n.GetOwners(), Ranges: n.GetRanges(),
		Vacant: n.GetVacant(), Lookups: n.GetLookups(), Moves: n.GetMoves(), Lull: n.GetLull(),
	}
}

// Namespace returns the status of one namespace; false if there is none.
func (s Status) Namespace(name string) (NamespaceStatus, bool) {
	for _, n := range s.Namespaces {
		if n.Name == name {
			return n, true
		}
	}
	return NamespaceStatus{}, false
}
