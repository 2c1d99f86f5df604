package loadmeter

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

const second = mono.Instant(time.Second)

// A book is a ledger with a clock.
type book struct {
	ledger
	now mono.Instant
}

func newBook(leases []leasehold.Lease) *book {
	b := &book{ledger: newLedger(0)}
	b.hold(leases)
	return b
}

// pass advances the clock, with an amount of work on each of the keys.
func (b *book) pass(d time.Duration, work float64, keys ...leasehold.Key) {
	b.now = b.now.Add(d)
	b.advance(b.now)
	for _, key := range keys {
		b.enter(sample{key, work})
	}
}

// total returns the reported work on the keys of r.
func total(l *partition.Loads, r leasehold.Range) float64 {
	sum := 0.0
	for _, c := range l.Cells {
		if r.Covers(c.Range) {
			sum += c.Rate
		}
	}
	return sum
}

func wantAbout(t rapid.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want)+1e-9 {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func wantValid(t rapid.TB, l *partition.Loads) {
	t.Helper()
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(l.Cells) > protocol.MaxCells || len(l.Hot) > protocol.MaxHotKeys {
		t.Fatalf("%d cells and %d hot keys", len(l.Cells), len(l.Hot))
	}
	for _, h := range l.Hot {
		told := false
		for _, c := range l.Cells {
			if c.Range.Contains(h.Key) {
				told = h.Rate <= c.Rate
			}
		}
		if !told {
			t.Fatalf("hot key %v with rate %v is in no cell", h.Key, h.Rate)
		}
	}
}

// Steady work is reported exactly from the first second on, with any interval of updates.
func TestSteadyWork(t *testing.T) {
	for _, step := range []time.Duration{10 * time.Millisecond, time.Second, 10 * time.Second} {
		b := newBook(everything())
		for b.now < 60*second {
			b.pass(step, 100*step.Seconds(), 1<<40, 1<<63)
			l := b.loads()
			if b.now < second {
				if len(l.Cells) > 0 || len(l.Hot) > 0 {
					t.Fatalf("after %v: %v", b.now, l)
				}
				continue
			}
			wantValid(t, l)
			wantAbout(t, b.now.String(), total(l, leasehold.Range{}), 200, 1e-6)
			wantAbout(t, b.now.String(), total(l, leasehold.Range{Limit: 1 << 63}), 100, 1e-6)
		}
	}
}

// After a change the difference to the new rate decays by a factor of e every 15 s.
func TestAveragesDecay(t *testing.T) {
	b := newBook(everything())
	for range 100 {
		b.pass(time.Second, 100, 7)
	}
	b.pass(15*time.Second, 0)
	wantAbout(t, "after 15 s of nothing", total(b.loads(), leasehold.Range{}), 100/math.E, 0.01)
	b.pass(time.Hour, 0)
	wantAbout(t, "after an hour", total(b.loads(), leasehold.Range{}), 0, 0)
	b.pass(365*24*time.Hour, 0)
	wantValid(t, b.loads())
}

// The averages stay valid if time does not advance or goes back.
func TestTimeDoesNotAdvance(t *testing.T) {
	b := newBook(everything())
	b.pass(2*time.Second, 10, 1)
	b.pass(0, 10, 1)
	b.pass(-time.Second, 10, 1)
	l := b.loads()
	wantValid(t, l)
	if sum := total(l, leasehold.Range{}); sum < 10 || sum > 20 {
		t.Errorf("30 in 2 s: %v per second", sum)
	}
}

// A range below the minimum age is not reported. After that its rate covers the time since the grant.
func TestNewRange(t *testing.T) {
	left, right := lease(0, 1<<63), lease(1<<63, 0)
	b := newBook([]leasehold.Lease{left})
	for range 60 {
		b.pass(time.Second, 10, 1)
	}
	b.hold([]leasehold.Lease{left, right})
	b.pass(900*time.Millisecond, 0)
	for _, c := range b.loads().Cells {
		if !left.Range.Covers(c.Range) {
			t.Fatalf("after 0.9 s: %v", c)
		}
	}
	b.pass(600*time.Millisecond, 60, 1<<63+1)
	l := b.loads()
	wantValid(t, l)
	wantAbout(t, "the new range", total(l, right.Range), 40, 0.1)
	wantAbout(t, "the old range", total(l, left.Range), 9, 0.1)
}

// The averages of keys are kept when leases are split, merged, granted with another generation, or divided into other
// cells.
func TestAveragesSurviveNewLeases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBook(everything())
		const parts = 64
		for range 30 {
			for i := range parts {
				b.pass(time.Second/parts, float64(1+i), leasehold.Key(i)<<58+1<<57)
			}
		}
		b.keys.Retain(func(leasehold.Key) bool { return rapid.Bool().Draw(t, "watched") })
		cuts := rapid.SliceOfNDistinct(rapid.IntRange(1, parts-1), 0, 40, rapid.ID).Draw(t, "cuts")
		slices.Sort(cuts)
		var leases []leasehold.Lease
		from := 0
		for _, to := range append(cuts, parts) {
			if rapid.Bool().Draw(t, "held") {
				l := lease(leasehold.Key(from)<<58, leasehold.Key(to)<<58)
				leases = append(leases, l)
			}
			from = to
		}
		before := b.loads()
		b.hold(leases)
		after := b.loads()
		wantValid(t, after)
		for _, l := range leases {
			wantAbout(t, l.String(), total(after, l.Range), total(before, l.Range), 1e-6)
		}
		told := 0.0
		for _, l := range leases {
			told += total(after, l.Range)
		}
		wantAbout(t, "everything", total(after, leasehold.Range{}), told, 1e-6)
	})
}

// A hot key keeps its work when its cell is divided, and removes it when it is no longer held.
func TestHotKeysSurviveNewLeases(t *testing.T) {
	const hot = leasehold.Key(1)<<62 + 12345
	b := newBook(evenly(64))
	cold := func(i int) leasehold.Key { return leasehold.Key(i) * 0x9e3779b97f4a7c15 }
	for i := range 60_000 {
		b.pass(time.Millisecond, 1, cold(i))
		if i%4 == 0 {
			b.enter(sample{hot, 1})
		}
	}
	b.hold([]leasehold.Lease{lease(1<<62, 1<<62+1<<40)}) // of a cell with 2^54 keys, 2^40
	l := b.loads()
	wantValid(t, l)
	if len(l.Hot) != 1 || l.Hot[0].Key != hot {
		t.Fatalf("hot keys %v, want %v", l.Hot, hot)
	}
	wantAbout(t, "the hot key", l.Hot[0].Rate, 250, 0.05)
	wantAbout(t, "all", total(l, leasehold.Range{}), 250, 0.05)

	b.hold([]leasehold.Lease{lease(1<<62, hot), lease(hot+1, 1<<62+1<<40)})
	if l := b.loads(); len(l.Hot) > 0 || total(l, leasehold.Range{}) > 10 {
		t.Errorf("after the hot key is gone: %v, %v", total(l, leasehold.Range{}), l.Hot)
	}
}
