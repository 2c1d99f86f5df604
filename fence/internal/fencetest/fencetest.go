// Package fencetest is what every guard must do, whatever its database: one
// suite for all of them.
package fencetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

// A Guarded database has a list of lines for each resource. Its methods may be
// called by many goroutines at once.
type Guarded interface {
	// Append adds a line to the list of a resource, through the guard.
	Append(ctx context.Context, resource string, generation leasehold.Generation, line string) error
	// Lines returns the list of a resource, around the guard.
	Lines(t testing.TB, resource string) []string
}

// Run runs the suite. Each test gets a database of its own, or lists that nobody
// else uses.
func Run(t *testing.T, fresh func(t *testing.T) Guarded) {
	for name, test := range map[string]func(*testing.T, Guarded){
		"rising":              testRising,
		"late writer":         testLateWriter,
		"resources are apart": testResourcesAreApart,
		"odd resources":       testOddResources,
		"large generations":   testLargeGenerations,
		"bad input":           testBadInput,
		"context":             testContext,
		"many writers":        testManyWriters,
		"real owners":         testRealOwners,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

func mustAppend(t testing.TB, db Guarded, resource string, g leasehold.Generation, line string) {
	t.Helper()
	if err := db.Append(t.Context(), resource, g, line); err != nil {
		t.Fatal(err)
	}
}

// WantKind wants an error of a kind that says all of these things.
func WantKind(t testing.TB, err error, kind leasehold.Kind, says ...string) {
	t.Helper()
	if err == nil || leasehold.KindOf(err) != kind {
		t.Errorf("error %v, want one of kind %v", err, kind)
	}
	for _, text := range says {
		if !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("error %v, want it to say %q", err, text)
		}
	}
}

// WantKnown wants an error after which it is known that nothing was written.
func WantKnown(t testing.TB, err error) {
	t.Helper()
	if err == nil || errors.Is(err, leasehold.ErrIndeterminate) {
		t.Errorf("error %v, want one after which it is known that nothing was written", err)
	}
}

func wantStale(t testing.TB, err error, says ...string) {
	t.Helper()
	WantKind(t, err, leasehold.ErrStale, says...)
	WantKnown(t, err)
}

func wantLines(t testing.TB, db Guarded, resource string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, db.Lines(t, resource)); diff != "" {
		t.Errorf("lines of %q (-want +got):\n%s", resource, diff)
	}
}

func testRising(t *testing.T, db Guarded) {
	mustAppend(t, db, "alice", 7, "1")
	mustAppend(t, db, "alice", 7, "2")
	mustAppend(t, db, "alice", 9, "3")
	mustAppend(t, db, "alice", 9, "4")
	wantLines(t, db, "alice", "1", "2", "3", "4")
}

// The picture that fencing is for: an owner checks its lease and pauses, another
// becomes the owner and writes, and the first one's write arrives.
func testLateWriter(t *testing.T, db Guarded) {
	mustAppend(t, db, "alice", 7, "a")
	mustAppend(t, db, "alice", 8, "b")
	wantStale(t, db.Append(t.Context(), "alice", 7, "a, late"), `"alice"`, "generation 7 is older than 8", "nothing was written")
	mustAppend(t, db, "alice", 8, "b again")
	wantStale(t, db.Append(t.Context(), "alice", 7, "a, later"))
	wantLines(t, db, "alice", "a", "b", "b again")
}

func testResourcesAreApart(t *testing.T, db Guarded) {
	mustAppend(t, db, "alice", 9, "a")
	mustAppend(t, db, "bob", 3, "b")
	wantStale(t, db.Append(t.Context(), "alice", 3, "late"))
	wantStale(t, db.Append(t.Context(), "bob", 2, "late"))
	wantLines(t, db, "alice", "a")
	wantLines(t, db, "bob", "b")
}

// None of these is taken for another, or for something that it says.
func testOddResources(t *testing.T, db Guarded) {
	odd := []string{
		"a", "A", "ä", "a\u0308", "a b", " a", "a ", "a/b", "a:b", "'; DROP TABLE x; --", "$1", "%s", "\n",
		strings.Repeat("x", 1024), strings.Repeat("x", 1023) + "y",
	}
	for i, resource := range odd {
		mustAppend(t, db, resource, leasehold.Generation(100-i), resource)
	}
	for i, resource := range odd {
		wantStale(t, db.Append(t.Context(), resource, leasehold.Generation(99-i), "late"))
		wantLines(t, db, resource, resource)
	}
}

// A generation has 63 bits: more than a number of Lua or JavaScript, and more or
// fewer digits than the next.
func testLargeGenerations(t *testing.T, db Guarded) {
	for _, g := range []leasehold.Generation{
		1, 9, 10, 99, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<53 + 2,
		9_999_999_999, 10_000_000_000, math.MaxInt64 - 1, math.MaxInt64,
	} {
		resource := fmt.Sprintf("large-%d", g)
		mustAppend(t, db, resource, g, "now")
		want := []string{"now"}
		if g > 1 {
			wantStale(t, db.Append(t.Context(), resource, g-1, "late"), fmt.Sprintf("generation %d is older than %d", g-1, g))
			wantStale(t, db.Append(t.Context(), resource, 1, "late"))
		}
		if g < math.MaxInt64 {
			mustAppend(t, db, resource, g+1, "next")
			wantStale(t, db.Append(t.Context(), resource, g, "late"))
			want = append(want, "next")
		}
		wantLines(t, db, resource, want...)
	}
}

func testBadInput(t *testing.T, db Guarded) {
	for name, c := range map[string]struct {
		resource   string
		generation leasehold.Generation
	}{
		"no resource":       {"", 1},
		"a long resource":   {strings.Repeat("x", 1025), 1},
		"bytes":             {"\xff", 1},
		"a zero byte":       {"a\x00", 1},
		"no generation":     {"alice", 0},
		"no int64":          {"alice", math.MaxInt64 + 1},
		"the most of a bad": {"alice", math.MaxUint64},
	} {
		t.Run(name, func(t *testing.T) {
			err := db.Append(t.Context(), c.resource, c.generation, "x")
			WantKind(t, err, leasehold.ErrInvalid)
			WantKnown(t, err)
		})
	}
	wantLines(t, db, "alice")
}

func testContext(t *testing.T, db Guarded) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := db.Append(ctx, "alice", 9, "x")
	WantKind(t, err, leasehold.ErrUnavailable, "nothing was written")
	WantKnown(t, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	mustAppend(t, db, "alice", 8, "a") // the other has left nothing
	wantLines(t, db, "alice", "a")
}

// Writers of many generations at once, on one resource: what was accepted has
// rising generations, in the order in which it was written (I9). What was
// reported written is there, once, and what was refused is not.
func testManyWriters(t *testing.T, db Guarded) {
	const writers, writes = 8, 40
	var granted atomic.Uint64 // the last generation
	granted.Store(1)
	var mu sync.Mutex
	written, refused := make(map[string]bool), 0
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			g := leasehold.Generation(1)
			for n := range writes {
				if rng.IntN(4) == 0 { // it becomes the owner
					g = leasehold.Generation(granted.Add(1))
				}
				line := fmt.Sprintf("%d by writer %d, write %d", g, i, n)
				err := db.Append(t.Context(), "alice", g, line)
				mu.Lock()
				switch {
				case err == nil:
					written[line] = true
				case leasehold.KindOf(err) == leasehold.ErrStale, leasehold.KindOf(err) == leasehold.ErrUnavailable:
					WantKnown(t, err)
					refused++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(written) == 0 || refused == 0 {
		t.Errorf("%d written, %d refused: they were not many at once", len(written), refused)
	}
	wantRising(t, db.Lines(t, "alice"), written)
}

// wantRising wants lines that begin with rising generations, and all of those
// that were written and no others.
func wantRising(t *testing.T, lines []string, written map[string]bool) {
	t.Helper()
	var highest uint64
	for _, line := range lines {
		var g uint64
		if _, err := fmt.Sscan(line, &g); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if g < highest {
			t.Errorf("%q was written after generation %d", line, highest)
		}
		highest = max(highest, g)
		if !written[line] {
			t.Errorf("%q was refused, or is there twice", line)
		}
		delete(written, line)
	}
	for line := range written {
		t.Errorf("%q was written, and is not there", line)
	}
}
