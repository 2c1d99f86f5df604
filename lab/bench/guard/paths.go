package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/keyrange"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/partition"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A path is code that is executed for every request, renewal or change.
type path struct {
	name string
	// start returns a function that executes the path once, and one for cleanup.
	start func(context.Context) (once func(), stop func(), err error)
}

func paths() []path {
	return []path{
		{"nothing", pure(func() (func(), error) { return func() {}, nil })},
		{"lookup.Find", withOwner(find)},
		{"owner.Check", withOwner(check)},
		{"owner.Held", withOwner(held)},
		{"leasemap.Map.Get", withOwner(mapGet)},
		{"leasemap.Map.Update", withOwner(mapUpdate)},
		{"manager machine: a renewal of 64 leases", pure(renewal)},
		{"lookup machine: a change applied", pure(apply)},
		{"wire: a renewal encoded", pure(encodeRenewal)},
		{"wire: a renewal decoded", pure(decodeRenewal)},
		{"wire: 8 changes encoded", pure(encodeUpdate)},
		{"wire: 8 changes decoded", pure(decodeUpdate)},
	}
}

func pathNamed(name string) (path, error) {
	for _, p := range paths() {
		if p.name == name {
			return p, nil
		}
	}
	return path{}, fmt.Errorf("unknown path %q", name)
}

// pure is a path that has nothing to stop.
func pure(start func() (func(), error)) func(context.Context) (func(), func(), error) {
	return func(context.Context) (func(), func(), error) {
		once, err := start()
		return once, func() {}, err
	}
}

// withOwner is a path that uses an owner with 64 leases.
func withOwner(start func(context.Context, *loadgen.Local) (func(), error)) func(context.Context) (func(), func(), error) {
	return func(ctx context.Context) (func(), func(), error) {
		s, err := loadgen.StartLocal(ctx)
		if err != nil {
			return nil, nil, err
		}
		once, err := start(ctx, s)
		return once, s.Close, err
	}
}

func find(ctx context.Context, s *loadgen.Local) (func(), error) {
	l, err := s.Lookup(ctx)
	names := s.Names()
	i, sum := 0, 0
	return func() {
		addr, _ := l.Find(leasehold.KeyOf(names[i%len(names)]))
		sum += len(addr)
		i++
	}, err
}

func check(_ context.Context, s *loadgen.Local) (func(), error) {
	o, keys := s.Owner, s.Keys()
	i, sum := 0, leasehold.Generation(0)
	return func() {
		if l, ok := o.Check(keys[i%len(keys)]); ok {
			sum += l.Generation
		}
		i++
	}, nil
}

func held(_ context.Context, s *loadgen.Local) (func(), error) {
	o := s.Owner
	lease, ok := o.Check(s.Keys()[0])
	if !ok {
		return nil, fmt.Errorf("the owner does not hold its key")
	}
	n := 0
	return func() {
		if o.Held(lease) {
			n++
		}
	}, nil
}

func newMap(ctx context.Context, s *loadgen.Local) (*leasemap.Map[int], []string, error) {
	m, err := leasemap.New(leasemap.Config[int]{})
	if err != nil {
		return nil, nil, err
	}
	m.Use(s.Owner)
	names := s.Names()
	for _, name := range names {
		if _, err := m.Update(ctx, name, addOne); err != nil {
			return nil, nil, err
		}
	}
	return m, names, nil
}

func addOne(v *int) error { *v++; return nil }

func mapGet(ctx context.Context, s *loadgen.Local) (func(), error) {
	m, names, err := newMap(ctx, s)
	i, sum := 0, 0
	return func() {
		v, _, err := m.Get(names[i%len(names)])
		if err != nil {
			panic(err)
		}
		sum += v
		i++
	}, err
}

func mapUpdate(ctx context.Context, s *loadgen.Local) (func(), error) {
	m, names, err := newMap(ctx, s)
	i := 0
	return func() {
		if _, err := m.Update(ctx, names[i%len(names)], addOne); err != nil {
			panic(err)
		}
		i++
	}, err
}

const namespace leasehold.Namespace = "guard"

// Leases per owner, and owners per table.
const (
	perOwner = 64
	owners   = 10
)

func holder(i int) *table.Holder {
	h := &table.Holder{Owner: leasehold.OwnerID(fmt.Sprintf("server-%05d", i)), Addr: "10.0.0.1:7000", Weight: 1}
	copy(h.Session[:], fmt.Sprintf("session-%08d", i))
	return h
}

// renewalRequest returns a leader with one owner of 64 leases, and the owner's renewal without
// changes.
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
	for range 100 { // until nothing changes
		request.Seq++
		answer := stepAndCommit(m, now, request)
		if answer == nil {
			return nil, 0, request, errors.New("no reply from the leader")
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

// everySecond assigns every second of 128 ranges to an owner.
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

// stepAndCommit steps a leader with a request, commits its changes, and returns the last reply.
func stepAndCommit(m *manager.Machine, now mono.Instant, request manager.Request) (answer *protocol.LeaseReply) {
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
			panic(fmt.Sprintf("actions of a renewal: %v", actions))
		}
		answer := actions[0].(manager.Send).Reply
		request.Heard, request.Applied = answer.Seq, answer.Seq
	}, nil
}

// newTable returns a table of ten owners with 64 interleaved ranges each.
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

// moves applies n changes to t and returns them: ranges from the i-th on move from the first
// owner to another, or back.
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

// apply applies a change at a lookup: one of 640 ranges moves.
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
	const prepared = 2000 // more than are executed
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
			panic(fmt.Sprintf("the lookup has LSN %d, want %d", m.LSN(), c[0].LSN))
		}
	}, nil
}

func encodeRenewal() (func(), error) {
	_, _, request, err := renewalRequest()
	return func() {
		if _, err := proto.Marshal(wire.FromLeaseRequest(request.LeaseRequest)); err != nil {
			panic(err)
		}
	}, err
}

func decodeRenewal() (func(), error) {
	_, _, request, err := renewalRequest()
	if err != nil {
		return nil, err
	}
	bytes, err := proto.Marshal(wire.FromLeaseRequest(request.LeaseRequest))
	return func() {
		var message leaseholdv1.HoldRequest
		if err := proto.Unmarshal(bytes, &message); err != nil {
			panic(err)
		}
		if _, err := wire.ToLeaseRequest(&message, protocol.DefaultLimits); err != nil {
			panic(err)
		}
	}, err
}

// changesPerUpdate is the number of changes in an update.
const changesPerUpdate = 8

func update() (*protocol.LookupReply, error) {
	t, err := newTable()
	if err != nil {
		return nil, err
	}
	from := t.LSN()
	changes, err := moves(t, 0, changesPerUpdate)
	return &protocol.LookupReply{Namespace: namespace, Leader: "m1", Term: 1, From: from, LSN: t.LSN(), Changes: changes}, err
}

func encodeUpdate() (func(), error) {
	reply, err := update()
	return func() {
		if _, err := wire.EncodeUpdate(reply); err != nil {
			panic(err)
		}
	}, err
}

func decodeUpdate() (func(), error) {
	reply, err := update()
	if err != nil {
		return nil, err
	}
	bytes, err := proto.Marshal(wire.FromLookupReply(reply))
	return func() {
		var message leaseholdv1.FollowResponse
		if err := proto.Unmarshal(bytes, &message); err != nil {
			panic(err)
		}
		if _, err := wire.ToLookupReply(message.GetUpdate(), protocol.DefaultLimits); err != nil {
			panic(err)
		}
	}, err
}
