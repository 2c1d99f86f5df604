package flease

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// newReady returns process 1, which participates, and the time.
func newReady(t *testing.T, change func(*Config)) (*Machine, Time) {
	t.Helper()
	cfg := Config{
		Self: 1, Incarnation: 1, Peers: []Process{1, 2, 3}, Lease: 24 * time.Hour, Epsilon: time.Second, Drift: 1.2,
		Rand: rand.New(rand.NewPCG(1, 2)),
	}
	change(&cfg)
	now := Time{Wall: Wall(time.Hour)}
	m, err := New(now, cfg)
	if err != nil {
		t.Fatal(err)
	}
	now = Time{now.Mono.Add(48 * time.Hour), now.Wall.Add(48 * time.Hour)}
	m.Advance(now)
	return m, now
}

// Bids that wait for long leases leave no timers behind.
func TestLongWaitsLeaveNoTimers(t *testing.T) {
	m, now := newReady(t, func(*Config) {})
	kept := now
	for i := range 20_000 {
		name := fmt.Sprint(i % 100)
		if err := m.Acquire(now, name); err != nil {
			t.Fatal(err)
		}
		c, _ := m.acceptor.cells.find(name)
		b := c.bid
		v := Value{Owner: 2, Incarnation: 22, Serial: 1, Fence: 1, Until: now.Wall.Add(m.cfg.Lease), Left: m.cfg.Lease}
		m.await(now, b, &v)
		m.at(b, now.Mono.Add(m.cfg.Lease)) // as if our own acceptor had the lease
		now = Time{now.Mono.Add(time.Second), now.Wall.Add(time.Second)}
		m.Advance(now)
		m.Release(now, name)
	}
	if n := len(m.proposer.alarms.later) + m.proposer.alarms.soon.n; n > 2*maxStale {
		t.Errorf("%d alarms are kept for %d bids after %v", n, len(m.proposer.bids), now.Mono.Sub(kept.Mono))
	}
}

// Groups without resources do not accumulate, and those with resources are kept.
func TestGroupsAreBounded(t *testing.T) {
	const processes = 200
	var group []Process
	m, now := newReady(t, func(c *Config) {
		c.Lease, c.Peers = time.Minute, nil
		for i := range processes {
			c.Peers = append(c.Peers, Process(i+1))
		}
		c.Group = func(string) []Process { return group }
	})
	group = []Process{1, 2, 3}
	if err := m.Watch(now, "kept", true); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		group = []Process{1, Process(2 + i%100), Process(102 + i/100%99)}
		if err := m.Watch(now, fmt.Sprint(i), true); err != nil {
			t.Fatal(err)
		}
		if err := m.Watch(now, fmt.Sprint(i), false); err != nil {
			t.Fatal(err)
		}
		now = Time{now.Mono.Add(time.Second), now.Wall.Add(time.Second)}
		m.Advance(now)
	}
	if n := len(m.acceptor.groups); n > 3*maxGroups {
		t.Errorf("%d groups are kept for %d resources", n, m.Size())
	}
	if c, _ := m.acceptor.cells.find("kept"); c == nil || c.group.cells != 1 || len(c.group.members) != 3 {
		t.Errorf("a group with a resource is lost: %+v", c)
	}
}

// Requests of processes that are not members of a resource's group add no resource.
func TestNonMembersAddNoResources(t *testing.T) {
	m, now := newReady(t, func(c *Config) {
		c.Group = func(name string) []Process {
			if name == "ours" {
				return []Process{1, 3}
			}
			return []Process{2, 3}
		}
	})
	for _, name := range []string{"ours", "theirs"} {
		e := &Envelope{From: 2, Incarnation: 22, To: 1, Sent: now.Wall}
		m.Receive(now, e, []Message{{Kind: KindRead, Name: name, Ballot: Ballot{Interval: 1 << 40, Round: 1, Process: 2}}})
		if err := m.Acquire(now, "theirs"); err == nil {
			t.Error("a bid for a resource of another group is accepted")
		}
	}
	if m.Size() != 0 || m.counts.Foreign != 2 {
		t.Errorf("%d resources, %d foreign messages", m.Size(), m.counts.Foreign)
	}
}
