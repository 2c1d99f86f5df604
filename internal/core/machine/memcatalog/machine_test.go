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

// A group is managers whose calls arrive at once, unless the other is down.
type group struct {
	t       *testing.T
	now     mono.Instant
	members map[storage.ManagerID]*memcatalog.Machine
	down    map[storage.ManagerID]bool
	said    []string // what the machines tell their shells
	asks    int
	lapsed  map[storage.ManagerID]bool // leads without authority

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

// restart makes a manager forget everything.
func (g *group) restart(id storage.ManagerID) {
	g.t.Helper()
	g.processes++
	m, err := memcatalog.New(memcatalog.Config{Self: id, Process: g.processes, Peers: names(len(g.members)), Longest: longest})
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

// pass lets time pass for a manager until at, as its shell would.
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
	if n > 0 { // what others have answered may have changed it
		_, wake = g.members[id].Advance(g.now)
	}
	return n, wake
}

// do carries actions out. What they lead to comes after that.
func (g *group) do(id storage.ManagerID, actions []memcatalog.Action) {
	g.t.Helper()
	actions = append([]memcatalog.Action(nil), actions...)
	for _, a := range actions {
		switch a := a.(type) {
		case memcatalog.Ask:
			g.asks++
			if !g.down[a.To] && !g.down[id] {
				g.step(a.To, memcatalog.Asked{From: id, Request: a.Request})
			}
		case memcatalog.Answer:
			if !g.lapsed[a.To] {
				g.step(a.To, memcatalog.Answered{From: id, Response: a.Response})
			}
		case memcatalog.Loaded:
			g.said = append(g.said, fmt.Sprintf("%s: loaded %s", id, describe(a.Catalog)))
		case memcatalog.Written:
			g.said = append(g.said, fmt.Sprintf("%s: %v", id, a.Outcome))
		case memcatalog.Outranked:
			g.said = append(g.said, fmt.Sprintf("%s: outranked by %d", id, a.By))
		case memcatalog.Forgotten:
			g.said = append(g.said, fmt.Sprintf("%s: forgotten", id))
		}
	}
}

// describe writes a catalog as the term and version that it was written in, and
// the names that it has.
func describe(c *storage.Catalog) string {
	out := fmt.Sprintf("%d.%d", c.Term, c.Version)
	for i := range c.Namespaces {
		out += " " + string(c.Namespaces[i].Name)
	}
	return out
}

// wants fails unless the machines have said just this since they were last asked.
func (g *group) wants(want ...string) {
	g.t.Helper()
	if fmt.Sprint(g.said) != fmt.Sprint(want) {
		g.t.Fatalf("at %v they said %q, want %q", g.now, g.said, want)
	}
	g.said = nil
}

func (g *group) lead(id storage.ManagerID, term leasehold.Term) {
	g.step(id, memcatalog.Lead{Term: term})
}

// create adds a namespace to the catalog that a leader leads by.
func (g *group) create(id storage.ManagerID, name leasehold.Namespace) {
	g.t.Helper()
	c := g.members[id].Catalog()
	g.step(id, memcatalog.Write{Prev: c.Version, Catalog: c.With(storage.Namespace{Name: name})})
}

// begun returns a group of three led by a in term 1, with a namespace x.
func begun(t *testing.T) *group {
	t.Helper()
	g := newGroup(t, 3)
	g.lead("a", 1)
	g.pass("a", longest)
	g.create("a", "x")
	g.wants("a: forgotten", "a: loaded 1.1", "a: done")
	return g
}

// A group that knows nothing begins when all have said so, and when nobody can
// have a lease of which nobody knows.
func TestBegins(t *testing.T) {
	g := newGroup(t, 3)
	g.down["c"] = true
	g.lead("a", 1)
	g.pass("a", time.Minute)
	g.wants()
	g.down["c"] = false
	g.pass("a", time.Second)
	g.wants("a: forgotten")
	g.pass("a", longest-2*time.Second)
	g.wants()
	g.pass("a", 2*time.Second)
	g.wants("a: loaded 1.1")
	g.lead("a", 1) // it asks again
	g.wants("a: loaded 1.1")
}

func TestChangeCountsWhenAMajorityHasIt(t *testing.T) {
	g := begun(t)
	g.down["b"], g.down["c"] = true, true
	g.create("a", "y")
	g.pass("a", time.Second)
	g.wants()
	g.create("a", "z")
	g.wants("a: conflict") // one at a time
	g.down["b"] = false
	g.pass("a", time.Second)
	g.wants("a: done")
	if got := describe(g.members["b"].Catalog()); got != "1.3 x y" {
		t.Errorf("b has %s", got)
	}
	g.step("a", memcatalog.Write{Prev: 2, Catalog: &storage.Catalog{}})
	g.wants("a: conflict") // the catalog is another by now
}

func TestNextLeaderFindsIt(t *testing.T) {
	g := begun(t)
	g.down["c"] = true
	g.create("a", "y")
	g.wants("a: done")
	g.down["a"], g.down["c"] = true, false
	g.step("a", memcatalog.StepDown{})
	g.lead("c", 2) // it has never heard of y
	g.wants("c: loaded 2.4 x y")
	g.down["a"] = false
	g.lead("a", 1) // its word counts no more
	g.pass("a", time.Second)
	g.said = nil
	g.create("a", "z")
	g.wants("a: conflict")
	if got := describe(g.members["b"].Catalog()); got != "2.4 x y" {
		t.Errorf("b has %s", got)
	}
}

// One that was restarted is given the catalog as soon as it says that it has none.
func TestRestartedIsTold(t *testing.T) {
	g := begun(t)
	g.restart("b")
	g.pass("a", 1100*time.Millisecond) // once until the leader asks all
	if got := g.members["b"].Catalog(); got == nil || describe(got) != "1.2 x" {
		t.Errorf("b has %v", got)
	}
}

// A leader whose time is over does not make one who knows nothing count among those who
// know: what that one confirmed before it was restarted may be newer.
func TestStaleLeaderInformsNobody(t *testing.T) {
	g := begun(t)
	g.down["a"] = true // it stands still, and does not know that its time is over
	g.lead("c", 2)
	g.create("c", "y") // b and c have it
	g.wants("c: loaded 2.3 x", "c: done")
	g.restart("b")
	g.down["a"], g.down["c"], g.lapsed["a"] = false, true, true
	g.pass("a", longest)
	if got := g.members["b"].Catalog(); got != nil {
		t.Fatalf("b has %s, which is older than what it has confirmed", describe(got))
	}
	g.step("a", memcatalog.StepDown{})
	g.lead("b", 3)
	g.pass("b", longest)
	g.wants() // it waits for c
	g.down["c"] = false
	g.step("c", memcatalog.StepDown{})
	g.pass("b", time.Second)
	g.wants("b: loaded 3.5 x y")
}

// A leader says that others have heard of a higher term: they will keep nothing of it.
func TestOutranked(t *testing.T) {
	g := begun(t)
	g.lead("c", 9)
	g.step("c", memcatalog.StepDown{})
	g.restart("a")
	g.said = nil
	g.lead("a", 5)
	if len(g.said) == 0 || g.said[0] != "a: outranked by 9" {
		t.Errorf("they said %q", g.said)
	}
}

func TestMissing(t *testing.T) {
	g := newGroup(t, 3)
	if missing := g.members["a"].Missing(); missing != nil {
		t.Errorf("one who does not lead waits for %v", missing)
	}
	g.down["c"] = true
	g.lead("a", 1)
	if missing := g.members["a"].Missing(); fmt.Sprint(missing) != "[c]" {
		t.Errorf("it waits for %v, want c", missing)
	}
	g.down["c"] = false
	g.pass("a", longest+time.Second)
	if missing := g.members["a"].Missing(); missing != nil {
		t.Errorf("it waits for %v, and has the catalog", missing)
	}
}

// Of those who know, a majority is needed: one that was restarted may have been the
// only one of them to know of the newest.
func TestBlankManagersDoNotCount(t *testing.T) {
	g := begun(t)
	g.down["c"] = true
	g.create("a", "y") // a and b have it
	g.wants("a: done")
	g.restart("a")
	g.down["b"], g.down["c"] = true, false
	g.lead("c", 2) // a knows nothing, and c not of y
	g.pass("c", time.Minute)
	g.wants()
	g.down["b"] = false
	g.pass("c", time.Second)
	g.wants("c: loaded 2.4 x y")
	if got := describe(g.members["a"].Catalog()); got != "2.4 x y" {
		t.Errorf("a has %s", got)
	}
}

// If too many have forgotten, what is left is taken; but what owners were promised
// may be forgotten too.
func TestTakesWhatIsLeft(t *testing.T) {
	g := begun(t)
	g.restart("a")
	g.restart("b")
	g.lead("a", 2)
	g.wants("a: forgotten")
	g.pass("a", longest)
	g.wants("a: loaded 2.3 x")
}

// The leader soon tells one that was restarted.
func TestTellsTheRestarted(t *testing.T) {
	g := begun(t)
	g.pass("a", 2*time.Second)
	g.restart("b")
	if g.members["b"].Catalog() != nil {
		t.Fatal("it knows something")
	}
	g.pass("a", 2*time.Second+time.Millisecond)
	if c := g.members["b"].Catalog(); c == nil || describe(c) != "1.2 x" {
		t.Errorf("after two rounds it has %v", c)
	}
	before := g.asks
	g.pass("a", 10*time.Second)
	if n := g.asks - before; n > 22 {
		t.Errorf("%d questions in 10 s of quiet", n)
	}
}

// Who steps down does not know what becomes of its change.
func TestStepsDown(t *testing.T) {
	g := begun(t)
	g.down["b"], g.down["c"] = true, true
	g.create("a", "y")
	g.step("a", memcatalog.StepDown{})
	g.wants("a: unknown")
	if _, wake := g.advance("a"); wake != mono.Never {
		t.Errorf("it wants to be woken at %v", wake)
	}
}

// Strangers, and answers to questions that nobody asked, are not heard.
func TestIgnores(t *testing.T) {
	g := newGroup(t, 3)
	g.step("a", memcatalog.Asked{From: "stranger", Request: &memcatalog.Request{Term: 9, Seq: 1, Catalog: &storage.Catalog{Term: 9, Version: 9}}})
	if g.members["a"].Catalog() != nil {
		t.Error("it keeps what a stranger says")
	}
	g.down["b"], g.down["c"] = true, true
	g.lead("a", 1)
	for _, r := range []*memcatalog.Response{
		{Term: 1, Seq: 0}, {Term: 1, Seq: 99}, {Term: 2, Seq: 1}, // too early, too late, of a later leader's friend
		{Term: 1, Seq: 1, Known: true}, // but not which
	} {
		g.step("a", memcatalog.Answered{From: "b", Response: r})
		g.step("a", memcatalog.Answered{From: "c", Response: r})
	}
	g.pass("a", time.Minute)
	g.wants("a: outranked by 2", "a: outranked by 2")
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
