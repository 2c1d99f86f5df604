package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

const namespace leasehold.Namespace = "guard"

// How many leases an owner has, and how many owners a table.
const (
	perOwner = 64
	owners   = 10
)

func holder(i int) *table.Holder {
	h := &table.Holder{Owner: leasehold.OwnerID(fmt.Sprintf("server-%05d", i)), Addr: "10.0.0.1:7000", Weight: 1}
	copy(h.Session[:], fmt.Sprintf("session-%08d", i))
	return h
}

// renewalRequest returns a leader with one owner, who has 64 leases, and what that
// one says when there is no news.
func renewalRequest() (*manager.Machine, mono.Instant, manager.Request, error) {
	now := mono.Instant(time.Hour)
	policy, err := everySecond(holder(1).Owner)
	if err != nil {
		return nil, 0, manager.Request{}, err
	}
	config := manager.Config{Namespace: namespace, Self: "m1", Rand: rand.New(rand.NewPCG(1, 2)), Policy: policy}
	m, err := manager.New(now, config, 1, mono.Never, &storage.State{})
	if err != nil {
		return nil, 0, manager.Request{}, err
	}
	m.Advance(now)
	request := manager.Request{LeaseRequest: &protocol.LeaseRequest{Namespace: namespace, Holder: holder(1)}}
	for range 100 { // until there is nothing new
		request.Seq++
		answer := settle(m, now, request)
		if answer == nil {
			return nil, 0, request, errors.New("the leader does not answer")
		}
		settled := answer.Term == request.Term && len(answer.Offers) == perOwner && len(request.Leases) == perOwner
		request.Term, request.Heard, request.Applied = answer.Term, answer.Seq, answer.Seq
		request.Leases = request.Leases[:0]
		for _, o := range answer.Offers {
			request.Leases = append(request.Leases, o.Lease)
		}
		if settled {
			return m, now, request, nil
		}
	}
	return nil, 0, request, fmt.Errorf("the owner has %d leases, want %d", len(request.Leases), perOwner)
}

// everySecond gives an owner every second of 128 ranges.
func everySecond(owner leasehold.OwnerID) (partition.Static, error) {
	var slots []partition.Slot
	for i := range leasehold.Key(2 * perOwner) {
		s := partition.Slot{Start: i << 57}
		if i%2 == 0 {
			s.Owner = owner
		}
		slots = append(slots, s)
	}
	return partition.NewStatic(slots)
}

// settle lets the leader hear a request, commits what it wants committed, and
// returns its last answer.
func settle(m *manager.Machine, now mono.Instant, request manager.Request) (answer *protocol.LeaseReply) {
	actions, _ := m.Step(now, request)
	for range 100 {
		commits := false
		for _, a := range actions {
			switch a := a.(type) {
			case manager.Send:
				answer = a.Reply
			case manager.Commit:
				commits = true
			}
		}
		if !commits {
			return answer
		}
		actions, _ = m.Step(now, manager.Committed{Outcome: storage.Done})
	}
	return answer
}

func renewal() (func(), error) {
	m, now, request, err := renewalRequest()
	if err != nil {
		return nil, err
	}
	return func() {
		request.Seq++
		now = now.Add(time.Millisecond)
		actions, _ := m.Step(now, request)
		if len(actions) != 1 {
			panic(fmt.Sprintf("a renewal led to %v", actions))
		}
		answer := actions[0].(manager.Send).Reply
		request.Heard, request.Applied = answer.Seq, answer.Seq
	}, nil
}

// newTable returns a table of ten owners with 64 ranges each, in turn.
func newTable() (*table.Table, error) {
	var b keyrange.Builder[table.Entry]
	holders := make([]*table.Holder, owners)
	for i := range holders {
		holders[i] = holder(i)
	}
	const ranges = owners * perOwner
	for i := range leasehold.Key(ranges) {
		b.Append(i<<54, table.Entry{Generation: leasehold.Generation(i + 1), Holder: holders[i%owners]})
	}
	return table.Restore(1, ranges, b.Map())
}

// moves returns n changes that follow on t, which they change: ranges go from the
// first owner to another and back, from the i-th on.
func moves(t *table.Table, i, n int) ([]table.Change, error) {
	var changes []table.Change
	for ; n > 0; n-- {
		r, e := t.At(leasehold.Key(i%perOwner*owners) << 54)
		to := holder(0)
		if e.Holder.Session == to.Session {
			to = holder(5)
		}
		c := table.Change{LSN: t.LSN() + 1, Kind: table.Moved, Range: r, Generation: t.Newest() + 1, From: e.Holder, Holder: to}
		if err := t.Apply(&c); err != nil {
			return nil, err
		}
		changes = append(changes, c)
		i++
	}
	return changes, nil
}

// apply is what a lookup does with a change: a table of 640 ranges, one of which
// moves.
func apply() (func(), error) {
	now := mono.Instant(time.Hour)
	m, err := lookup.New(now, lookup.Config{Namespace: namespace, ID: 1, Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		return nil, err
	}
	t, err := newTable()
	if err != nil {
		return nil, err
	}
	m.Advance(now)
	m.Step(now, lookup.Reply{LookupReply: &protocol.LookupReply{Namespace: namespace, Leader: "m1", Term: 1, Echo: 1, LSN: t.LSN(), Snapshot: t.Clone()}})
	const prepared = 2000 // more than anyone asks for
	changes, err := moves(t, 0, prepared)
	if err != nil {
		return nil, err
	}
	i := 0
	return func() {
		c := changes[i : i+1]
		i++
		m.Step(now, lookup.Reply{LookupReply: &protocol.LookupReply{
			Namespace: namespace, Leader: "m1", Term: 1, From: c[0].LSN - 1, LSN: c[0].LSN, Changes: c,
		}})
		if m.LSN() != c[0].LSN {
			panic(fmt.Sprintf("the lookup is at %d, want %d", m.LSN(), c[0].LSN))
		}
	}, nil
}
