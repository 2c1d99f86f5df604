// Package fencetest is the test suite for the guards of all databases.
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

// A Guarded database has a list of lines for each resource. It is safe for concurrent use.
type Guarded interface {
	// Append adds a line to the list of a resource, through the guard.
	Append(ctx context.Context, resource string, generation leasehold.Generation, line string) error
	// Lines returns the list of a resource, without the guard.
	Lines(t testing.TB, resource string) []string
}

// Run runs the suite. Each test gets its own database, or its own lists.
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

// WantKind checks the kind of an error, and that its text contains these parts.
func WantKind(t testing.TB, err error, kind leasehold.Kind, parts ...string) {
	t.Helper()
	if err == nil || leasehold.KindOf(err) != kind {
		t.Errorf("error %v, want one of kind %v", err, kind)
	}
	for _, part := range parts {
		if !strings.Contains(fmt.Sprint(err), part) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
}

// WantUnwritten checks that an error means that nothing was written.
func WantUnwritten(t testing.TB, err error) {
	t.Helper()
	if err == nil || errors.Is(err, leasehold.ErrIndeterminate) {
		t.Errorf("error %v, want one that is not indeterminate", err)
	}
}

func wantStale(t testing.TB, err error, parts ...string) {
	t.Helper()
	WantKind(t, err, leasehold.ErrStale, parts...)
	WantUnwritten(t, err)
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

// The purpose of fencing: an owner checks its lease and pauses, another becomes the owner and
// writes, and then the write of the first one arrives.
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

// Unusual resources are distinct, and are not interpreted.
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

// A generation has 63 bits, more than a number in Lua or JavaScript, and its number of digits
// varies.
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
			WantUnwritten(t, err)
		})
	}
	wantLines(t, db, "alice")
}

func testContext(t *testing.T, db Guarded) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := db.Append(ctx, "alice", 9, "x")
	WantKind(t, err, leasehold.ErrUnavailable, "nothing was written")
	WantUnwritten(t, err)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	mustAppend(t, db, "alice", 8, "a") // the cancelled write has stored no generation
	wantLines(t, db, "alice", "a")
}

// Concurrent writers of many generations on one resource: the generations of accepted writes
// rise in the order of the writes (I9). Each acknowledged write is there once, and no rejected
// one.
func testManyWriters(t *testing.T, db Guarded) {
	const writers, writes = 8, 40
	var granted atomic.Uint64 // the last generation
	granted.Store(1)
	var mu sync.Mutex
	written, rejected := make(map[string]bool), 0
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
					WantUnwritten(t, err)
					rejected++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(written) == 0 || rejected == 0 {
		t.Errorf("%d written, %d rejected: the writers were not concurrent", len(written), rejected)
	}
	wantRising(t, db.Lines(t, "alice"), written)
}

// wantRising checks that the generations of the lines rise, and that the lines are those that
// were written.
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
			t.Errorf("%q was rejected, or is repeated", line)
		}
		delete(written, line)
	}
	for line := range written {
		t.Errorf("%q was written, but is missing", line)
	}
}
