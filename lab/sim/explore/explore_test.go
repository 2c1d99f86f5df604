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

// All interleavings, which do not get far; and all with one detour, which get as far as to
// a second leader, and to leases that end.
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
			t.Errorf("%s: it ends after %d steps of %d", s.Name(), r.Deepest, s.Depth)
		}
		states, terms, changes = states+r.States, max(terms, r.Figure("leaders")), max(changes, r.Figure("changes"))
		t.Logf("%v, %v", r, r.Elapsed.Round(time.Millisecond))
	}
	if states < 30_000 || terms < 2 || changes < 5 {
		t.Errorf("%d states, %d leaders, %d changes: that proves little", states, terms, changes)
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

// The number of states does not depend on how many look for them. No two processes are
// alike here: which of two states that differ only in who is who is found first depends on
// who looks, and what then comes first in it.
func TestWorkersFindTheSame(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(25, 1), "joining/even"))
	s.Clocks.Rates = [processes]Rate{even, even + 1, even, even + 1}
	var found []uint64
	for _, workers := range []int{1, 4} {
		r, err := explorer.Explore(t.Context(), s, explorer.Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, r.States)
	}
	if found[0] != found[1] {
		t.Errorf("one finds %d states, four find %d", found[0], found[1])
	}
}

// walk visits states at random, from where a scenario begins.
func walk(t *testing.T, s *Scenario, steps int, random *rand.Rand, visit func(*state, []*state)) {
	st := engine.Must(s.Begin())
	for range steps {
		all := followers(st)
		visit(st, all)
		if t.Failed() {
			return
		}
		// What is usual often, or it gets nowhere.
		st = all[0]
		if random.IntN(3) == 0 {
			st = all[random.IntN(len(all))]
		}
	}
}

// followers returns all states that can follow.
func followers(st *state) []*state {
	var all []*state
	st.Each(func(n *state, _ func() string) { all = append(all, n) })
	return all
}

// A step must not change the state that it starts from: machines are copied whole.
func TestStepsDoNotChangeWhereTheyStart(t *testing.T) {
	for _, s := range Scenarios(100, 100) {
		describe := newKit(s)
		walk(t, s, 60, rand.New(rand.NewPCG(1, 2)), func(st *state, all []*state) {
			before := st.Hash()
			for _, n := range all {
				followers(n)
			}
			again := *st
			again.kit = describe
			for i, p := range st.procs {
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

// States that differ only in who is who have the same followers, but for who is who: so
// it is enough to explore one of them. Numbers of messages are left out of the comparison:
// a leader that speaks to two owners in one step numbers its messages in the order of their
// names. Nobody compares those to one owner with those to the other.
func TestTwinsHaveTheSameFuture(t *testing.T) {
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
			mine, theirs := followers(st), followers(twin)
			if !slices.Equal(set(hashes(mine, plain)), set(hashes(theirs, plain))) {
				t.Fatalf("seed %d: what can follow differs:\n%s\n%s", seed, st.holdings(), twin.holdings())
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
		t.Errorf("only %d pairs of states differed in who is who, and there were %d changes of the table: that proves little", twins, changes)
	}
}

func set(all []uint64) []uint64 { return slices.Compact(slices.Sorted(slices.Values(all))) }

// twinOf returns which of all is the same as a state but for who is who: one that is not
// the very same, if there is one, and one with the same numbers, if there is one.
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

// hashes returns those of states as a kit describes them.
func hashes(all []*state, k *kit) []uint64 {
	var out []uint64
	for _, st := range all {
		again := *st
		again.kit, again.mail = k, nil
		for i, p := range st.procs {
			copied := *p
			k.digestProcess(&copied)
			again.procs[i] = &copied
		}
		for _, l := range st.mail {
			copied := *l
			k.digestLetter(&copied)
			again.mail = append(again.mail, &copied)
		}
		stored := *st.store
		k.digestStore(&stored)
		again.store = &stored
		out = append(out, again.Hash())
	}
	return out
}

// Clocks that differ by more than the bound are found: the checks can fail, and the way to
// the violation can be gone again.
func TestClocksBeyondTheBoundAreFound(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(40, 1), "settled/slow-leader"))
	s.Clocks.Rates[0] = 750 // against 1100: a ratio of 1.47
	r, err := explorer.Explore(t.Context(), s, explorer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := r.Violated
	if v == nil {
		t.Fatalf("nothing was found: %v", r)
	}
	if v.Invariant != "one leader" || len(v.Path) == 0 || !strings.Contains(v.Text, "terms 1 and 2") {
		t.Errorf("got %v after %d steps", v, len(v.Path))
	}
	again, err := explorer.Replay(s, v.Replay)
	if err != nil || again.Text != v.Text || !slices.Equal(again.Path, v.Path) {
		t.Errorf("the same way leads to %v, %v", again, err)
	}
	s.Clocks.Rates[0] = slow
	if _, err := explorer.Replay(s, v.Replay); err == nil {
		t.Error("with clocks within the bound the same way leads to a violation")
	}
}

func TestReplayRefusesWhatIsNoWay(t *testing.T) {
	s := Scenarios(10, 1)[0]
	for _, way := range []string{"", "7", "x:", "-1:", "3:5=1", "3:1=x", "300:", "2:0=999", "1:"} {
		if _, err := explorer.Replay(s, way); err == nil {
			t.Errorf("%q is taken for a way", way)
		}
	}
	if _, err := explorer.Find(Scenarios(1, 1), "noon/even"); err == nil || !strings.Contains(err.Error(), "dawn/even") {
		t.Errorf("a scenario that there is not: %v", err)
	}
}

func TestExploringEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := explorer.Explore(ctx, Scenarios(100, explorer.Unlimited)[0], explorer.Options{}); err == nil {
		t.Error("it goes on after its context has ended")
	}
}

// What is said about a letter tells it from others.
func TestLettersAreDescribed(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(100, 1), "dawn/even"))
	seen := map[string]bool{}
	walk(t, s, 60, rand.New(rand.NewPCG(4, 4)), func(st *state, _ []*state) {
		for _, l := range st.mail {
			seen[fmt.Sprintf("%T", l.what)] = true
			if text := l.String(); strings.Contains(text, "%!") || len(text) < 10 {
				t.Errorf("%q", text)
			}
		}
	})
	if len(seen) < 4 {
		t.Errorf("only these were seen: %v", seen)
	}
}

// A description has all that a machine is made of, but for what the rules leave out: two
// machines that have come to differ are told apart.
func TestDigestsTellMachinesApart(t *testing.T) {
	s := engine.Must(explorer.Find(Scenarios(100, 1), "joining/even"))
	k := newKit(s)
	st := engine.Must(s.Begin())
	var texts []string
	for range 40 {
		text := string(image.Append(k.image, nil, st.procs[managers].owner, nil))
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		st = followers(st)[0]
	}
	if len(texts) < 5 {
		t.Errorf("in 40 steps an owner was in %d states", len(texts))
	}
}
