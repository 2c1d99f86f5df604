package flease

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// twinConfig returns the configuration of nodes on the loopback, with short leases.
func twinConfig(transport Transport, log *diary) func(self ID, of []Member) Config {
	return func(self ID, of []Member) Config {
		return Config{
			Self: self, Members: of, Lease: time.Second, Epsilon: 100 * time.Millisecond,
			Key: secret.New("0123456789abcdef"), Transport: transport, Logger: log.logger(),
		}
	}
}

func allReady(t *testing.T, nodes ...*Node) {
	t.Helper()
	for _, n := range nodes {
		if err := n.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(20 * time.Second); !is(); {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("timeout: %s", what)
		}
	}
}

// wantTaken waits until a node has given way.
func wantTaken(t *testing.T, n *Node) {
	t.Helper()
	select {
	case <-n.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("a process with a duplicate ID has not given way")
	}
	ctx := t.Context()
	_, acquire := n.Acquire(ctx, "r")
	_, try := n.TryAcquire(ctx, "r")
	var watch error
	for _, watch = range n.Watch(ctx, "r") {
	}
	for what, err := range map[string]error{"Ready": n.Ready(ctx), "Err": n.Err(), "Acquire": acquire, "TryAcquire": try, "Watch": watch} {
		if leasehold.KindOf(err) != leasehold.ErrNameTaken || !strings.Contains(err.Error(), "another process runs as") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s := n.Status(); s.Ready || s.Err == nil {
		t.Errorf("status %+v", s)
	}
}

// A second process with the ID of a member that takes part gives way while it waits, whether the other members
// have its address or not. The first process keeps its leases. The members that detect both log an error.
func TestSecondProcessWithSameIDGivesWay(t *testing.T) {
	for name, transport := range map[string]Transport{"UDP": UDP{}, "TCP": TCP{}} {
		for where, moved := range map[string]bool{"listens elsewhere": false, "has another address": true} {
			t.Run(name+"/"+where, func(t *testing.T) {
				t.Parallel()
				var log diary
				config := twinConfig(transport, &log)
				members := freeMembers(t, 4)
				elsewhere := members[3].Addr
				members = members[:3]
				first, second := launch(t, config(1, members)), launch(t, config(2, members))
				allReady(t, first, second)
				held, err := first.Acquire(t.Context(), "r")
				if err != nil {
					t.Fatal(err)
				}
				anew := append([]Member{{ID: 1, Addr: elsewhere}}, members[1:]...)
				again := config(1, members)
				again.Listen = elsewhere
				if moved { // a change of addresses that is half done
					again.Members, members = anew, anew
				}
				third := launch(t, config(3, members))
				allReady(t, third)
				twin := launch(t, again)
				wantTaken(t, twin)
				if !held.Valid() {
					t.Error("the first has lost its lease")
				}
				if first.Err() != nil {
					t.Errorf("the first process gave way, too: %v", first.Err())
				}
				eventually(t, "a member logs two processes", func() bool {
					return log.count("two processes run as the same member", "of=1", "from=127.0.0.1:") > 0
				})
				if moved && second.Status().Members[0].Twins.IsZero() && third.Status().Members[0].Twins.IsZero() { // they have detected it
					t.Error("no status has the duplicate")
				}
				eventually(t, "the second process logs that it gave way", func() bool {
					return log.count("another process runs as this member", "member=1") == 1
				})
			})
		}
	}
}

// Of two processes that start at the same time one remains, and only one acquires leases.
func TestDuplicatesStartTogether(t *testing.T) {
	for name, transport := range map[string]Transport{"UDP": UDP{}, "TCP": TCP{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log diary
			config := twinConfig(transport, &log)
			members := freeMembers(t, 4)
			anew := append([]Member{{ID: 1, Addr: members[3].Addr}}, members[1:3]...)
			members = members[:3]
			twins := []*Node{launch(t, config(1, members)), launch(t, config(1, anew))}
			allReady(t, launch(t, config(2, members)), launch(t, config(3, anew)))
			select {
			case <-twins[0].Done():
			case <-twins[1].Done():
				twins[0], twins[1] = twins[1], twins[0]
			case <-time.After(20 * time.Second):
				t.Fatal("both take part")
			}
			wantTaken(t, twins[0])
			if err := twins[1].Ready(t.Context()); err != nil {
				t.Errorf("acquire by the remaining one: %v", err)
			}
		})
	}
}

// A process of a group of one detects a duplicate without other members.
func TestDuplicateInGroupOfOne(t *testing.T) {
	var log diary
	config := twinConfig(UDP{}, &log)
	members := freeMembers(t, 2)
	first := launch(t, config(1, members[:1]))
	allReady(t, first)
	again := config(1, members[:1])
	again.Listen = members[1].Addr
	wantTaken(t, launch(t, again))
	if err := first.Err(); err != nil {
		t.Error(err)
	}
}

// A restarted process takes part, at the same address or another, at once, and with or without
// a release of its leases before.
func TestRestartIsNotADuplicate(t *testing.T) {
	for name, transport := range map[string]Transport{"UDP": UDP{}, "TCP": TCP{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log diary
			config := twinConfig(transport, &log)
			members := freeMembers(t, 4)
			elsewhere := members[3].Addr
			members = members[:3]
			first := launch(t, config(1, members))
			allReady(t, first, launch(t, config(2, members)), launch(t, config(3, members)))
			dead, cancel := context.WithCancel(t.Context())
			cancel()
			for _, listen := range []string{"", "", elsewhere, ""} {
				if first.Addr() == members[0].Addr { // no other member has the other address
					if _, err := first.Acquire(t.Context(), "s"); err != nil {
						t.Fatal(err)
					}
				}
				_ = first.Close(dead) // its leases expire
				c := config(1, members)
				c.Listen = listen
				first = launch(t, c)
				allReady(t, first)
			}
			if n := log.count("run as th"); n != 0 {
				t.Errorf("a restarted process was considered a duplicate: %s", log.String())
			}
			if _, err := first.Acquire(t.Context(), "r"); err != nil {
				t.Error(err)
			}
		})
	}
}

// A member that gives way has lost its leases, and waiting calls fail.
func TestGiveWayEndsLeases(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		held := s.acquire(1, "r")
		waits := make(chan error, 1)
		go func() {
			_, err := s.nodes[1].Acquire(t.Context(), "r")
			waits <- err
		}()
		synctest.Wait()
		n := s.nodes[1]
		n.step(func(now machine.Time) {
			answer, _ := n.machine.Strange(now, &machine.Envelope{From: 9, Incarnation: 9}) // has the incarnation
			told := machine.Envelope{From: 2, Incarnation: 22, GiveWay: true, To: answer.Incarnation}
			n.machine.Receive(now, &told, nil)
			n.process(now)
		})
		if held.Valid() || leasehold.KindOf(held.Err()) != leasehold.ErrNotOwner || !strings.Contains(held.Err().Error(), "another process runs as the same member") {
			t.Errorf("the lease is valid: %t, %v", held.Valid(), held.Err())
		}
		if err := <-waits; leasehold.KindOf(err) != leasehold.ErrNameTaken {
			t.Errorf("a waiting call: %v", err)
		}
		wantTaken(t, n)
		time.Sleep(2 * takeover)
		s.acquire(2, "r")
	})
}
