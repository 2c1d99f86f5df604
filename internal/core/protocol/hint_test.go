package protocol

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

func TestHintsAreBounded(t *testing.T) {
	long := storage.ManagerID(strings.Repeat("x", leasehold.MaxOwnerIDLen+1))
	for _, n := range []NotLeader{{Term: MaxTerm + 1}, {Leader: long}} {
		if err := n.Validate(); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%v is accepted: %v", n.Term, err)
		}
	}
	if err := (&NotLeader{Term: 3, Leader: "m1"}).Validate(); err != nil {
		t.Error(err)
	}
}

// Holders in a reply are validated like those in requests.
func TestHoldersInRepliesAreValidated(t *testing.T) {
	good := &table.Holder{Owner: "a", Session: leasehold.Session{1}, Addr: "x", Weight: 1}
	reply := LeaseReply{Namespace: "n", Session: leasehold.Session{2}, Term: 1, Seq: 1, Timing: DefaultTiming(), Incumbent: good, Contender: good}
	if err := reply.Validate(DefaultLimits); err != nil {
		t.Fatal(err)
	}
	bad := *good
	bad.Owner = leasehold.OwnerID(strings.Repeat("x", leasehold.MaxOwnerIDLen+1))
	for name, spoil := range map[string]func(*LeaseReply){
		"incumbent": func(r *LeaseReply) { r.Incumbent = &bad },
		"contender": func(r *LeaseReply) { r.Contender = &bad },
		"leader":    func(r *LeaseReply) { r.Leader = storage.ManagerID(bad.Owner) },
	} {
		r := reply
		spoil(&r)
		if err := r.Validate(DefaultLimits); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("a bad %s is accepted: %v", name, err)
		}
	}
	change := table.Change{LSN: 1, Kind: table.Granted, Generation: 1, Holder: &bad}
	lookup := LookupReply{Namespace: "n", Term: 1, LSN: 1, Changes: []table.Change{change}}
	if err := lookup.Validate(DefaultLimits); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a change with a bad holder is accepted: %v", err)
	}
}
