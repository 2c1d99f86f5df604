package memcatalog_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/memcatalog"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

const longest = 12 * time.Second

// A group is a set of managers whose messages arrive immediately, unless a manager is down.
type group struct {
	t        *testing.T
	now      mono.Instant
	members  map[storage.ManagerID]*memcatalog.Machine
	down     map[storage.ManagerID]bool
	events   []string // actions of the machines, other than messages
	requests int
	lapsed   map[storage.ManagerID]bool // the shell has no authority to lead

	rebuild bool // of the configuration of managers that start

	processes uint64
}

func names(n int) (ids []storage.ManagerID) {
	for i := range n {
		ids = append(ids, storage.ManagerID(rune('a'+i)))
	}
	return ids
}

func newGroup(t *testing.T, n int) *group {
	t.Helper()
	g := &group{t: t, members: map[storage.ManagerID]*memcatalog.Machine{}, down: map[storage.ManagerID]bool{}, lapsed: map[storage.ManagerID]bool{}}
	for _, id := range names(n) {
		g.members[id] = nil
	}
	for _, id := range names(n) {
		g.restart(id)
	}
	return g
}

// restart replaces a manager with a blank one.
func (g *group) restart(id storage.ManagerID) {
	g.t.Helper()
	g.processes++
	m, err := memcatalog.New(memcatalog.Config{
		Self: id, Process: g.processes, Peers: names(len(g.members)), Longest: longest, Rebuild: g.rebuild,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.members[id] = m
}

func (g *group) step(id storage.ManagerID, e memcatalog.Event) {
	g.t.Helper()
	actions, _ := g.members[id].Step(g.now, e)
	g.do(id, actions)
}

// pass advances time for a manager by d, as its shell would.
func (g *group) pass(id storage.ManagerID, d time.Duration) {
	g.t.Helper()
	for end := g.now.Add(d); ; {
		_, wake := g.advance(id)
		if wake > end {
			g.now = end
			return
		}
		g.now = wake
	}
}

func (g *group) advance(id storage.ManagerID) (int, mono.Instant) {
	actions, wake := g.members[id].Advance(g.now)
	n := len(actions)
	g.do(id, actions)
	if n > 0 { // responses may have changed the wake time
		_, wake = g.members[id].Advance(g.now)
	}
	return n, wake
}

// do executes actions.
func (g *group) do(id storage.ManagerID, actions []memcatalog.Action) {
	g.t.Helper()
	actions = append([]memcatalog.Action(nil), actions...)
	for _, a := range actions {
		switch a := a.(type) {
		case memcatalog.Ask:
			g.requests++
			if !g.down[a.To] && !g.down[id] {
				g.step(a.To, memcatalog.Asked{From: id, Request: a.Request})
			}
		case memcatalog.Answer:
			if !g.lapsed[a.To] {
				g.step(a.To, memcatalog.Answered{From: id, Response: a.Response})
			}
		case memcatalog.Loaded:
			g.events = append(g.events, fmt.Sprintf("%s: loaded %s", id, describe(a.Catalog)))
		case memcatalog.Written:
			g.events = append(g.events, fmt.Sprintf("%s: %v", id, a.Outcome))
		case memcatalog.Outranked:
			g.events = append(g.events, fmt.Sprintf("%s: outranked by %d", id, a.By))
		case memcatalog.Forgotten:
			if a.Wait > 0 {
				g.events = append(g.events, fmt.Sprintf("%s: memory lost", id))
			} else {
				g.events = append(g.events, fmt.Sprintf("%s: waits no longer", id))
			}
		}
	}
}

// describe formats a catalog as its term, version and namespaces.
func describe(c *storage.Catalog) string {
	out := fmt.Sprintf("%d.%d", c.Term, c.Version)
	for i := range c.Namespaces {
		out += " " + string(c.Namespaces[i].Name)
	}
	return out
}

// expect fails unless the machines emitted exactly these actions since the last call.
func (g *group) expect(want ...string) {
	g.t.Helper()
	if fmt.Sprint(g.events) != fmt.Sprint(want) {
		g.t.Fatalf("at %v: actions %q, want %q", g.now, g.events, want)
	}
	g.events = nil
}

func (g *group) lead(id storage.ManagerID, term leasehold.Term) {
	g.step(id, memcatalog.Lead{Term: term})
}

// create adds a namespace to the leader's catalog.
func (g *group) create(id storage.ManagerID, name leasehold.Namespace) {
	g.t.Helper()
	c := g.members[id].Catalog()
	g.step(id, memcatalog.Write{Prev: c.Version, Catalog: c.With(storage.Namespace{Name: name})})
}

// begun returns a group of three, led by a in term 1, with a namespace x.
func begun(t *testing.T) *group {
	t.Helper()
	g := newGroup(t, 3)
	g.lead("a", 1)
	g.pass("a", longest)
	g.create("a", "x")
	g.expect("a: memory lost", "a: waits no longer", "a: loaded 1.1", "a: done")
	return g
}

// A blank group starts when all managers have responded, and when no lease can exist that no
// manager has a record of.
func TestBegins(t *testing.T) {
	g := newGroup(t, 3)
	g.down["c"] = true
	g.lead("a", 1)
	g.pass("a", longest-2*time.Second)
	g.expect()
	g.down["c"] = false
	g.pass("a", time.Second)
	g.expect("a: memory lost")
	g.pass("a", time.Second-1)
	g.expect()
	g.pass("a", 1)
	g.expect("a: waits no longer", "a: loaded 1.1")
	g.lead("a", 1) // it requests the catalog again
	g.expect("a: loaded 1.1")
}

func TestChangeCountsWhenAMajorityHasIt(t *testing.T) {
	g := begun(t)
	g.down["b"], g.down["c"] = true, true
	g.create("a", "y")
	g.pass("a", time.Second)
	g.expect()
	g.create("a", "z")
	g.expect("a: conflict") // one write at a time
	g.down["b"] = false
	g.pass("a", time.Second)
	g.expect("a: done")
	if got := describe(g.members["b"].Catalog()); got != "1.3 x y" {
		t.Errorf("b has %s", got)
	}
	g.step("a", memcatalog.Write{Prev: 2, Catalog: &storage.Catalog{}})
	g.expect("a: conflict") // the catalog has another version
}

func TestNextLeaderFindsIt(t *testing.T) {
	g := begun(t)
	g.down["c"] = true
	g.create("a", "y")
	g.expect("a: done")
	g.down["a"], g.down["c"] = true, false
	g.step("a", memcatalog.StepDown{})
	g.lead("c", 2) // it has not received y
	g.expect("c: loaded 2.4 x y")
	g.down["a"] = false
	g.lead("a", 1) // of a stale term
	g.pass("a", time.Second)
	g.events = nil
	g.create("a", "z")
	g.expect("a: conflict")
	if got := describe(g.members["b"].Catalog()); got != "2.4 x y" {
		t.Errorf("b has %s", got)
	}
}

// A restarted manager gets the catalog in the next refresh.
func TestRestartedManagerGetsTheCatalog(t *testing.T) {
	g := begun(t)
	g.restart("b")
	g.pass("a", 1100*time.Millisecond) // until the next refresh
	if got := g.members["b"].Catalog(); got == nil || describe(got) != "1.2 x" {
		t.Errorf("b has %v", got)
	}
}

// A leader whose authority has expired does not make a blank manager count towards a majority: the
// manager may have confirmed a newer catalog before its restart.
func TestBlankManagerIgnoresStaleLeader(t *testing.T) {
	g := begun(t)
	g.down["a"] = true // it is stopped, and does not detect that its authority has expired
	g.lead("c", 2)
	g.create("c", "y") // on b and c
	g.expect("c: loaded 2.3 x", "c: done")
	g.restart("b")
	g.down["a"], g.down["c"], g.lapsed["a"] = false, true, true
	g.pass("a", longest)
	if got := g.members["b"].Catalog(); got != nil {
		t.Fatalf("b has %s, which is older than the catalog that it has confirmed", describe(got))
	}
	g.step("a", memcatalog.StepDown{})
	g.lead("b", 3)
	g.pass("b", longest)
	g.expect() // waiting for c
	g.down["c"] = false
	g.step("c", memcatalog.StepDown{})
	g.pass("b", time.Second)
	g.expect("b: loaded 3.5 x y")
}

// A leader that was paused, and has confirmed the catalog of a later leader, keeps that catalog: it does not
// replace it by one of its own term.
func TestPausedLeaderKeepsTheCatalogOfALaterLeader(t *testing.T) {
	waiting := func(g *group) {
		g.lead("a", 1)
		later := &memcatalog.Request{Term: 2, Seq: 1, To: 1, Catalog: &storage.Catalog{Term: 2, Version: 1}}
		g.step("a", memcatalog.Asked{From: "b", Request: later})
	}
	for name, act := range map[string]func(g *group){
		"while it waits for leases": func(g *group) {
			waiting(g)
			g.pass("a", longest)
		},
		"before a write": func(g *group) {
			g.lead("a", 1)
			g.pass("a", longest)
			g.lead("b", 2)
			g.step("a", memcatalog.Write{Prev: 1, Catalog: &storage.Catalog{}})
		},
		"before it reads the catalog again": func(g *group) {
			waiting(g)
			g.restart("b")
			g.restart("c")
			g.lead("a", 1)
			g.pass("a", longest)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 3)
			act(g)
			if got := g.members["a"].Catalog(); got.Term != 2 {
				t.Errorf("a has %s, and has confirmed a catalog of term 2", describe(got))
			}
		})
	}
}

// A leader reports that other managers have received a higher term: they will reject its catalog.
func TestOutranked(t *testing.T) {
	g := begun(t)
	g.lead("c", 9)
	g.step("c", memcatalog.StepDown{})
	g.restart("a")
	g.events = nil
	g.lead("a", 5)
	if len(g.events) == 0 || g.events[0] != "a: outranked by 9" {
		t.Errorf("actions: %q", g.events)
	}
}

func TestMissing(t *testing.T) {
	g := newGroup(t, 3)
	if missing := g.members["a"].Missing(); missing != nil {
		t.Errorf("a manager that does not lead waits for %v", missing)
	}
	g.down["c"] = true
	g.lead("a", 1)
	if missing := g.members["a"].Missing(); fmt.Sprint(missing) != "[c]" {
		t.Errorf("the leader waits for %v, want c", missing)
	}
	g.down["c"] = false
	g.pass("a", longest+time.Second)
	if missing := g.members["a"].Missing(); missing != nil {
		t.Errorf("the leader waits for %v, although it has the catalog", missing)
	}
}

// Blank managers do not count towards the majority: a restarted manager may have been the only one
// of the majority with the newest catalog.
func TestBlankManagersDoNotCount(t *testing.T) {
	g := begun(t)
	g.down["c"] = true
	g.create("a", "y") // on a and b
	g.expect("a: done")
	g.restart("a")
	g.down["b"], g.down["c"] = true, false
	g.lead("c", 2) // a is blank, and c does not have y
	g.pass("c", time.Minute)
	g.expect()
	g.down["b"] = false
	g.pass("c", time.Second)
	g.expect("c: loaded 2.4 x y")
	if got := describe(g.members["a"].Catalog()); got != "2.4 x y" {
		t.Errorf("a has %s", got)
	}
}

// If too many managers are blank, the leader uses the remaining catalog, after a wait for leases
// that may be unknown too.
func TestUsesTheRemainingCatalog(t *testing.T) {
	g := begun(t)
	g.restart("a")
	g.restart("b")
	g.lead("a", 2)
	g.expect("a: memory lost")
	g.pass("a", longest)
	g.expect("a: waits no longer", "a: loaded 2.3 x")
}

// A group whose namespaces can be created again continues with a majority of blank managers, when all
// leases from before have expired. A manager that was unreachable gets the new catalog.
func TestRebuildsWithAMajority(t *testing.T) {
	g := begun(t)
	g.rebuild = true
	g.restart("a")
	g.restart("b")
	g.down["c"] = true
	g.lead("a", 2)
	g.expect("a: memory lost")
	g.pass("a", longest-1)
	g.expect()
	g.pass("a", 1)
	g.expect("a: waits no longer", "a: loaded 2.1")
	g.down["c"] = false
	g.pass("a", 2*time.Second)
	if got := describe(g.members["c"].Catalog()); got != "2.1" {
		t.Errorf("c has %s", got)
	}
}

// While a manager with another list of managers runs, no catalog is rebuilt: the managers that do not respond may have a
// leader of their own.
func TestDisputedCatalogIsNotRebuilt(t *testing.T) {
	dispute := memcatalog.Disputed{For: longest + 5*time.Second}
	for name, c := range map[string]struct {
		act  func(g *group)
		want []string
	}{
		"before the election": {func(g *group) {
			g.step("a", dispute)
			g.lead("a", 1)
		}, nil},
		"during the wait for leases": {func(g *group) {
			g.lead("a", 1)
			g.step("a", dispute)
		}, []string{"a: memory lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, 3)
			g.rebuild = true
			g.restart("a")
			g.restart("b")
			g.down["c"] = true
			c.act(g)
			g.pass("a", longest+4*time.Second)
			g.expect(c.want...)
			g.pass("a", 2*time.Second)
			g.expect("a: waits no longer", "a: loaded 1.1")
		})
	}
}

// A minority of the managers never rebuilds.
func TestMinorityDoesNotRebuild(t *testing.T) {
	g := newGroup(t, 3)
	g.rebuild = true
	g.restart("a")
	g.down["b"], g.down["c"] = true, true
	g.lead("a", 1)
	g.pass("a", time.Minute)
	g.expect()
}

// The leader soon sends the catalog to a restarted manager.
func TestRefreshReachesRestartedManager(t *testing.T) {
	g := begun(t)
	g.pass("a", 2*time.Second)
	g.restart("b")
	if g.members["b"].Catalog() != nil {
		t.Fatal("a restarted manager is not blank")
	}
	g.pass("a", 2*time.Second+time.Millisecond)
	if c := g.members["b"].Catalog(); c == nil || describe(c) != "1.2 x" {
		t.Errorf("after two refreshes it has %v", c)
	}
	before := g.requests
	g.pass("a", 10*time.Second)
	if n := g.requests - before; n > 22 {
		t.Errorf("%d requests in 10 s without changes", n)
	}
}

// The outcome of a write in progress is unknown after StepDown.
func TestStepsDown(t *testing.T) {
	g := begun(t)
	g.down["b"], g.down["c"] = true, true
	g.create("a", "y")
	g.step("a", memcatalog.StepDown{})
	g.expect("a: unknown")
	if _, wake := g.advance("a"); wake != mono.Never {
		t.Errorf("wake time %v", wake)
	}
}

// Requests from unknown managers, and responses without a request, are ignored.
func TestIgnores(t *testing.T) {
	g := newGroup(t, 3)
	g.step("a", memcatalog.Asked{From: "stranger", Request: &memcatalog.Request{Term: 9, Seq: 1, Catalog: &storage.Catalog{Term: 9, Version: 9}}})
	if g.members["a"].Catalog() != nil {
		t.Error("it stores the catalog of an unknown manager")
	}
	g.down["b"], g.down["c"] = true, true
	g.lead("a", 1)
	for _, r := range []*memcatalog.Response{
		{Term: 1, Seq: 0}, {Term: 1, Seq: 99}, {Term: 2, Seq: 1}, // too early, too late, of a higher term
		{Term: 1, Seq: 1, Known: true}, // without the catalog
	} {
		g.step("a", memcatalog.Answered{From: "b", Response: r})
		g.step("a", memcatalog.Answered{From: "c", Response: r})
	}
	g.pass("a", time.Minute)
	g.expect("a: outranked by 2", "a: outranked by 2")
}

func TestConfigRefuses(t *testing.T) {
	for _, cfg := range []memcatalog.Config{
		{Process: 1, Peers: names(3), Longest: longest},
		{Process: 1, Self: "z", Peers: names(3), Longest: longest},
		{Process: 1, Self: "a", Peers: append(names(3), "a"), Longest: longest},
		{Process: 1, Self: "a", Peers: names(3)},
		{Process: 1, Self: "a", Peers: names(3), Longest: longest, Retry: -1},
		{Process: 1, Self: "a", Peers: names(3), Longest: longest, Refresh: -1},
		{Self: "a", Peers: names(3), Longest: longest},
	} {
		if _, err := memcatalog.New(cfg); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
