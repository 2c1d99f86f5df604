package availability

import (
	"context"
	"errors"
	"fmt"
	"net/rpc"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
)

// An event is a failure in one of the sites.
type event struct {
	name, title string
	at          kind
	inject      func(ctx context.Context, s *site) error
	repair      func(ctx context.Context, s *site) error
	changes     bool // measure the time until a change is committed, too
	// limit and median are goals, in seconds: of the longest operation of all rounds, and of the median.
	limit, median float64
	skip          string // why it cannot be measured here
}

// A kind is one of the sites, which differ in their servers.
type kind int

const (
	plain      kind = iota
	supervised      // by "leasehold run"
	short           // leases
	distant         // the first server is on another host; leases are short
)

// events returns all events. The memory group and the network may be missing.
func events(memory string, noMemory, noNetwork error) []event {
	startRack := func(ctx context.Context, s *site) error { return s.startRack(ctx, 0) }
	var killed *managers.Manager
	restart := func(context.Context, *site) error { return killed.Start() }
	kill := func(m *managers.Manager, err error) error {
		if killed = m; err == nil {
			m.Kill()
		}
		return err
	}
	killLeader := func(ctx context.Context, s *site) error { return kill(s.group.Leader(ctx)) }
	killStoreLeader := func(ctx context.Context, s *site) error { return kill(s.storeLeader(ctx)) }
	drain := func(ctx context.Context, s *site) error { return s.racks[0][0].Terminate(ctx) }
	crash := func(_ context.Context, s *site) error {
		s.killRack(0)
		return nil
	}
	all := []event{
		{name: "drain", title: "a server is shut down (SIGTERM)", inject: drain, repair: startRack, limit: 1},
		{name: "owner-crash", title: "a server dies (kill -9)", inject: crash, repair: startRack, limit: leaseLimit + 3},
		{name: "leader-crash", title: "the leader dies (kill -9)", inject: killLeader, repair: restart, changes: true, limit: 1},
		{name: "store-leader-crash", title: "the store's leader dies (kill -9)", inject: killStoreLeader, repair: restart, changes: true, limit: 1},
	}
	for _, e := range []event{
		{name: "supervised-kill", title: "a supervised server dies (kill -9)", inject: crash},
		{name: "supervised-panic", title: "a supervised server panics", inject: crashItself(loadgen.Panic, "")},
		{name: "supervised-exit", title: "a supervised server calls os.Exit", inject: crashItself(loadgen.Exit, "")},
		{name: "supervised-memory", title: "a supervised server is killed: out of memory", inject: crashItself(loadgen.OutOfMemory, memory), skip: text(noMemory)},
	} {
		e.at, e.repair, e.limit, e.median = supervised, startRack, crashLimit, crashMedian
		all = append(all, e)
	}
	return append(all, event{
		name: "lost-host", title: "a host stops: preset fast", at: short, inject: loseHost, repair: startRack, limit: lostLimit,
	}, event{
		name: "lost-network", title: "a host's network is cut: preset fast", at: distant, skip: text(noNetwork), limit: lostLimit,
		inject: func(_ context.Context, s *site) error {
			s.cable.cut()
			return nil
		},
		repair: func(ctx context.Context, s *site) error {
			s.cable.heal()
			return startRack(ctx, s)
		},
	})
}

// crashItself has a server end itself.
func crashItself(how, group string) func(context.Context, *site) error {
	return func(_ context.Context, s *site) error {
		err := s.racks[0][0].Call("Crash", loadgen.Crash{How: how, Group: group}, nil)
		if refused := rpc.ServerError(""); err == nil || errors.As(err, &refused) {
			return fmt.Errorf("the server has not ended: %w", err)
		}
		return nil // it has ended without a reply
	}
}

// loseHost stops a server and its supervisor: they neither reply nor close a connection, as if the network were cut.
func loseHost(_ context.Context, s *site) error { return s.racks[0][0].Freeze() }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
