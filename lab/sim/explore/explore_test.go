package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/lab/sim/explore/image"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// All interleavings, of short paths; and all paths with one detour, which are long enough for a failover and
// the expiry of leases.
func TestExplore(t *testing.T) {
	var states, terms, changes uint64
	for _, s := range append(Scenarios(4, explorer.Unlimited), Scenarios(35, 1)...) {
		r, err := explorer.Explore(t.Context(), s, explorer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Violated; v != nil {
			t.Errorf("%s: %v\n%s", s.Name(), v, strings.Join(v.Path, "\n"))
		}
		if r.Deepest != s.Depth {
			t.Errorf("%s: the longest path has %d steps of %d", s.Name(), r.Deepest, s.Depth)
		}
		states, terms, changes = states+r.States, max(terms, r.Figure("leaders")), max(changes, r.Figure("changes"))
		t.Logf("%v, %v", r, r.Elapsed.Round(time.Millisecond))
	}
	if states < 30_000 || terms < 2 || changes < 5 {
		t.Errorf("%d states, %d leaders, %d changes: too few", states, terms, changes)
	}
}

// After an outage all leases are suspended. The scenarios reach states in which they are resumed,
// and states in which one ends because its range was granted to the other owner.
func TestSuspendedLeasesAreExplored(t *testing.T) {
	for _, c := range clocks {
		s := engine.Must(explorer.Find(Scenarios(60, 1), "outage/"+c.Name))
		st := engine.Must(s.Begin())
		if n := st.suspendedOwners(); n != owners || st.store.record.Term != 1 {
			t.Errorf("%s: %d owners have suspended leases, and the stored term is %d", s.Name(), n, st.store.record.Term)
		}
		r, err := explorer.Explore(t.Context(), s, explorer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Violated; v != nil {
			t.Errorf("%s: %v\n%s", s.Name(), v, strings.Join(v.Path, "\n"))
		}
		if r.Figure("suspendedStates") < 1000 || r.Figure("resumed") < 100 || r.Figure("refused") == 0 {
			t.Errorf("%v: too few", r)
		}
		t.Logf("%v, %v", r, r.Elapsed.Round(time.Millisecond))
	}
}

// In the scenarios with a lookup, it receives changes and losses, also from a standby.
func TestLookupsAreExplored(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(35, 1), "followed/slow-owners"))
	st := engine.Must(s.Begin())
	if n := st.procs[follower].lookup.LSN(); n == 0 || st.procs[0].followers == 0 {
		t.Errorf("at the beginning the lookup is at lsn %d, and processes %b follow the leader", n, st.procs[0].followers)
	}
	r, err := explorer.Explore(t.Context(), s, explorer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Violated; v != nil {
		t.Errorf("%s: %v\n%s", s.Name(), v, strings.Join(v.Path, "\n"))
	}
	if r.Figure("losses") < 10 {
		t.Errorf("%v: too few losses", r)
	}
}

// With supervisors, a crash ends the leases at once. The notices are duplicated, and cross renewals and failovers.
func TestDeathsAreExplored(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(35, 1), "supervised/slow-owners"))
	r, err := explorer.Explore(t.Context(), s, explorer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Violated; v != nil {
		t.Errorf("%s: %v\n%s", s.Name(), v, strings.Join(v.Path, "\n"))
	}
	if r.Figure("deaths") < 10 {
		t.Errorf("%v: too few deaths", r)
	}
}

// The number of states does not depend on the number of workers. All processes have different clock rates
// here: which of two symmetric states is explored, and the order of its successors, depends on the workers.
func TestStatesDoNotDependOnWorkers(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(25, 1), "joining/even"))
	s.Clocks.Rates = [processes]Rate{even, even + 1, even, even + 1, even}
	var found []uint64
	for _, workers := range []int{1, 4} {
		r, err := explorer.Explore(t.Context(), s, explorer.Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, r.States)
	}
	if found[0] != found[1] {
		t.Errorf("one worker finds %d states, four workers find %d", found[0], found[1])
	}
}

// walk visits states on a random path from the initial state of a scenario.
func walk(t *testing.T, s *Scenario, steps int, random *rand.Rand, visit func(*state, []*state)) {
	st := engine.Must(s.Begin())
	for range steps {
		all := successors(st)
		visit(st, all)
		if t.Failed() {
			return
		}
		// Prefer the step without a fault; otherwise there is no progress.
		st = all[0]
		if random.IntN(3) == 0 {
			st = all[random.IntN(len(all))]
		}
	}
}

// successors returns all successors.
func successors(st *state) []*state {
	var all []*state
	st.Each(func(n *state, _ func() string) { all = append(all, n) })
	return all
}

// A step does not change the state that it starts from: machines are copied completely.
func TestStepsDoNotChangeTheirState(t *testing.T) {
	for _, s := range Scenarios(100, 100) {
		describe := newKit(s)
		walk(t, s, 60, rand.New(rand.NewPCG(1, 2)), func(st *state, all []*state) {
			before := st.Hash()
			for _, n := range all {
				successors(n)
			}
			again := *st
			again.kit = describe
			for i, p := range st.running() {
				fresh := *p
				describe.digestProcess(&fresh)
				again.procs[i] = &fresh
			}
			if again.Hash() != before {
				t.Fatalf("%s: a machine was changed by a step of its copy", s.Name())
			}
		})
	}
}

// Symmetric states have symmetric successors, so it is enough to explore one of them. The comparison ignores
// sequence numbers: a leader that sends to two owners in one step numbers its messages in the order of their
// names, and numbers of messages to different owners are not compared.
func TestSymmetricStatesHaveSymmetricSuccessors(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(100, explorer.Unlimited), "dawn/even"))
	s.Crashes, s.Pauses = 1, 1
	without := rules
	without.Ignored = append(slices.Clip(rules.Ignored), "protocol.Seq")
	plain := newKit(s)
	plain.image = image.NewKit(without)
	twins, changes := 0, 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		st := engine.Must(s.Begin())
		twin := st
		for range 80 {
			mine, theirs := successors(st), successors(twin)
			if !slices.Equal(set(hashes(mine, plain)), set(hashes(theirs, plain))) {
				t.Fatalf("seed %d: the successors differ:\n%s\n%s", seed, st.holdings(), twin.holdings())
			}
			st = mine[0] // a message arrives, or time passes
			if random.IntN(5) == 0 {
				st = mine[random.IntN(len(mine))]
			}
			twin = twinOf(st, theirs, plain)
			if twin.hashAs(0) != st.hashAs(0) {
				twins++
			}
			changes = max(changes, len(st.store.changes))
		}
	}
	if twins < 500 || changes < 3 {
		t.Errorf("only %d pairs of symmetric states, and %d changes of the table", twins, changes)
	}
}

func set(all []uint64) []uint64 { return slices.Compact(slices.Sorted(slices.Values(all))) }

// twinOf returns the state in all that is symmetric to a state: preferably not equal to it, and preferably
// with the same sequence numbers.
func twinOf(st *state, all []*state, plain *kit) *state {
	var twin *state
	best := 0
	want := hashes([]*state{st}, plain)[0]
	for i, h := range hashes(all, plain) {
		n, fit := all[i], 1
		switch {
		case h != want:
			continue
		case n.Hash() == st.Hash() && n.hashAs(0) != st.hashAs(0):
			fit = 3
		case n.Hash() == st.Hash():
			fit = 2
		}
		if fit > best {
			twin, best = n, fit
		}
	}
	return twin
}

// hashes returns the hashes of states with the rules of a kit.
func hashes(all []*state, k *kit) []uint64 {
	var out []uint64
	for _, st := range all {
		again := *st
		again.kit, again.messages = k, nil
		for i, p := range st.running() {
			copied := *p
			k.digestProcess(&copied)
			again.procs[i] = &copied
		}
		for _, l := range st.messages {
			copied := *l
			k.digestMessage(&copied)
			again.messages = append(again.messages, &copied)
		}
		stored := *st.store
		k.digestStore(&stored)
		again.store = &stored
		out = append(out, again.Hash())
	}
	return out
}

// A violation with clocks beyond the drift bound is found, and replay repeats its path.
func TestClocksBeyondTheBoundAreFound(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(40, 1), "settled/slow-leader"))
	s.Clocks.Rates[0] = 750 // against 1100: a ratio of 1.47
	r, err := explorer.Explore(t.Context(), s, explorer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := r.Violated
	if v == nil {
		t.Fatalf("no violation found: %v", r)
	}
	if v.Invariant != "one leader" || len(v.Path) == 0 || !strings.Contains(v.Text, "terms 1 and 2") {
		t.Errorf("got %v after %d steps", v, len(v.Path))
	}
	again, err := explorer.Replay(s, v.Replay)
	if err != nil || again.Text != v.Text || !slices.Equal(again.Path, v.Path) {
		t.Errorf("the same path leads to %v, %v", again, err)
	}
	s.Clocks.Rates[0] = slow
	if _, err := explorer.Replay(s, v.Replay); err == nil {
		t.Error("with clocks within the bound the same path leads to a violation")
	}
}

func TestInvalidReplayPathIsRejected(t *testing.T) {
	s := Scenarios(10, 1)[0]
	for _, way := range []string{"", "7", "x:", "-1:", "3:5=1", "3:1=x", "300:", "2:0=999", "1:"} {
		if _, err := explorer.Replay(s, way); err == nil {
			t.Errorf("invalid path %q is accepted", way)
		}
	}
	if _, err := explorer.Find(Scenarios(1, 1), "noon/even"); err == nil || !strings.Contains(err.Error(), "dawn/even") {
		t.Errorf("an unknown scenario: %v", err)
	}
}

func TestExplorationEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := explorer.Explore(ctx, Scenarios(100, explorer.Unlimited)[0], explorer.Options{}); err == nil {
		t.Error("the exploration continues after its context has ended")
	}
}

// Each kind of message has a description.
func TestMessagesAreDescribed(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(100, 1), "followed/even"))
	seen := map[string]bool{}
	walk(t, s, 60, rand.New(rand.NewPCG(4, 4)), func(st *state, _ []*state) {
		for _, l := range st.messages {
			seen[fmt.Sprintf("%T", l.what)] = true
			if text := l.String(); strings.Contains(text, "%!") || len(text) < 10 {
				t.Errorf("%q", text)
			}
		}
	})
	if len(seen) < 4 {
		t.Errorf("only these kinds of messages: %v", seen)
	}
}

// A description contains the complete state of a machine, except for what the rules ignore: machines that
// differ have different descriptions.
func TestDigestsOfDifferentMachinesDiffer(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(100, 1), "joining/even"))
	k := newKit(s)
	st := engine.Must(s.Begin())
	var texts []string
	for range 40 {
		text := string(image.Append(k.image, nil, st.procs[managers].owner, nil))
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		st = successors(st)[0]
	}
	if len(texts) < 5 {
		t.Errorf("in 40 steps an owner was in %d states", len(texts))
	}
}
