// Package storetest is the test suite for implementations of leasemap.Store.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) leasemap.Store { return newTable(t) })
//	}
package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// Run runs the suite. Each test gets an empty store.
func Run(t *testing.T, fresh func(t *testing.T) leasemap.Store) {
	for name, test := range map[string]func(suite){
		"values":             suite.testValues,
		"tokens":             suite.testTokens,
		"a load fences":      suite.testLoadFences,
		"deletions":          suite.testDeletions,
		"repeated saves":     suite.testRepeatedSaves,
		"batches":            suite.testBatches,
		"names and values":   suite.testNamesAndValues,
		"large tokens":       suite.testLargeTokens,
		"TTL":                suite.testTTL,
		"context":            suite.testContext,
		"concurrent writers": suite.testConcurrentWriters,
		"alarms":             suite.testAlarms,
	} {
		t.Run(name, func(t *testing.T) { test(suite{t, fresh(t)}) })
	}
}

type suite struct {
	*testing.T
	leasemap.Store
}

func token(g leasehold.Generation, n uint64) leasemap.Version {
	return leasemap.Version{Generation: g, Number: n}
}

// value returns the record of a value, whose version is its token.
func value(name, text string, at leasemap.Version) leasemap.Record {
	return leasemap.Record{Name: name, Token: at, Version: at, Value: []byte(text)}
}

// save saves a batch and checks which names are refused.
func (s suite) save(batch []leasemap.Record, refused ...string) {
	s.Helper()
	got, err := s.Save(s.Context(), batch)
	if slices.Sort(got); err != nil || !slices.Equal(got, refused) {
		s.Errorf("refused: %q, %v; want %q", got, err, refused)
	}
}

func (s suite) saveOne(r leasemap.Record) {
	s.Helper()
	s.save([]leasemap.Record{r})
}

func (s suite) refuse(r leasemap.Record) {
	s.Helper()
	s.save([]leasemap.Record{r}, r.Name)
}

// load loads a name and checks its value and version; the zero Version means that there is none.
func (s suite) load(name string, at leasemap.Version, text string, version leasemap.Version) leasemap.Record {
	s.Helper()
	r, err := s.Load(s.Context(), name, at)
	if err != nil || string(r.Value) != text || r.Version != version {
		s.Errorf("%q has %q, version %v, %v; want %q, version %v", name, r.Value, r.Version, err, text, version)
	}
	return r
}

func (s suite) refuseLoad(name string, at leasemap.Version) {
	s.Helper()
	if r, err := s.Load(s.Context(), name, at); leasehold.KindOf(err) != leasehold.ErrStale {
		s.Errorf("%+v, %v; want ErrStale", r, err)
	}
}

func (s suite) testValues() {
	s.load("x", token(1, 1), "", leasemap.Version{})
	s.saveOne(value("x", "1", token(1, 2)))
	s.load("x", token(1, 3), "1", token(1, 2))
	s.saveOne(value("x", "2", token(1, 4)))
	s.saveOne(value("empty", "", token(1, 5)))
	s.load("x", token(2, 1), "2", token(1, 4))
	s.load("empty", token(1, 6), "", token(1, 5))
	moved := value("x", "3", token(2, 2))
	moved.Version = token(1, 9) // a value keeps its version when it moves
	s.saveOne(moved)
	s.load("x", token(2, 3), "3", token(1, 9))
}

func (s suite) testTokens() {
	s.saveOne(value("x", "1", token(5, 5)))
	s.refuse(value("x", "late", token(5, 4)))
	s.refuse(value("x", "late", token(4, 100)))
	s.refuseLoad("x", token(5, 4))
	s.refuseLoad("x", token(4, 100))
	s.saveOne(value("x", "2", token(6, 1)))
	s.saveOne(value("y", "1", token(1, 1))) // names are independent
	s.load("x", token(6, 2), "2", token(6, 1))
}

// A save that arrives after a load of a later owner is refused, and so is one of the same owner; also if there was no value.
func (s suite) testLoadFences() {
	s.saveOne(value("x", "1", token(1, 1)))
	for _, name := range []string{"x", "none"} {
		text, version := "", leasemap.Version{}
		if name == "x" {
			text, version = "1", token(1, 1)
		}
		s.load(name, token(2, 5), text, version)
		s.refuse(value(name, "late", token(1, 9)))
		s.refuse(value(name, "late", token(2, 4)))
		s.refuseLoad(name, token(1, 9))
		s.load(name, token(2, 6), text, version)
	}
}

func (s suite) testDeletions() {
	s.saveOne(value("x", "1", token(1, 1)))
	s.saveOne(leasemap.Record{Name: "x", Token: token(2, 1)})
	s.refuse(value("x", "late", token(1, 2)))
	s.load("x", token(2, 2), "", leasemap.Version{})
	s.saveOne(leasemap.Record{Name: "never", Token: token(2, 1)})
	s.refuse(value("never", "late", token(1, 2)))
	s.saveOne(value("x", "2", token(2, 3)))
	s.load("x", token(2, 4), "2", token(2, 3))
}

// A batch whose reply was lost is saved again.
func (s suite) testRepeatedSaves() {
	batch := []leasemap.Record{value("x", "1", token(1, 1)), value("y", "1", token(1, 2))}
	s.save(batch)
	s.save(batch)
	s.load("x", token(1, 3), "1", token(1, 1))
}

// A batch is saved except for the refused names.
func (s suite) testBatches() {
	s.save(nil)
	var batch []leasemap.Record
	var refused []string
	for i := range 1000 {
		r := value(fmt.Sprintf("name-%04d", i), fmt.Sprint(i), token(1, 1))
		if i%3 == 0 {
			s.load(r.Name, token(2, 1), "", leasemap.Version{})
			refused = append(refused, r.Name)
		}
		batch = append(batch, r)
	}
	s.save(batch, refused...)
	s.load("name-0999", token(2, 2), "", leasemap.Version{})
	s.load("name-0998", token(2, 1), "998", token(1, 1))
}

// Names and values are not interpreted.
func (s suite) testNamesAndValues() {
	names := []string{
		"a", "A", "ä", "a\u0308", "a b", " a", "a ", "a/b", "{a}", "a,b", `a"b`, `a\b`, `\`, "NULL", "null", "'; DROP TABLE x; --", "$1", "%s", "\n", "\t",
		strings.Repeat("x", 1024), strings.Repeat("x", 1023) + "y",
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	slices.Sort(names)
	var batch []leasemap.Record
	for i, name := range names {
		batch = append(batch, value(name, string(all)+name, token(1, uint64(i+1))))
	}
	s.save(batch)
	for i, name := range names {
		s.load(name, token(2, 1), string(all)+name, token(1, uint64(i+1)))
	}
	s.saveOne(value("huge", strings.Repeat("x", 4<<20), token(1, 1)))
	s.load("huge", token(1, 2), strings.Repeat("x", 4<<20), token(1, 1))
}

// Generations have 63 bits, more than a number in Lua or JavaScript, and numbers as many.
func (s suite) testLargeTokens() {
	for i, g := range []leasehold.Generation{9, 1 << 32, 1 << 53, 9_999_999_999, math.MaxInt64 - 1} {
		name := fmt.Sprint("x", i)
		s.saveOne(value(name, "1", token(g, math.MaxInt64-1)))
		s.refuse(value(name, "late", token(g, math.MaxInt64-2)))
		s.refuse(value(name, "late", token(g-1, math.MaxInt64)))
		s.load(name, token(g, math.MaxInt64), "1", token(g, math.MaxInt64-1))
		s.load(name, token(g+1, 1), "1", token(g, math.MaxInt64-1))
	}
}

func (s suite) testTTL() {
	for name, ttl := range map[string]time.Duration{"hour": time.Hour, "none": 0, "century": 100 * 365 * 24 * time.Hour} {
		r := value(name, "1", token(1, 1))
		r.TTL = ttl
		s.saveOne(r)
		got := s.load(name, token(1, 2), "1", token(1, 1))
		if left := got.TTL; left > ttl+time.Second || left < ttl-time.Minute || (left == 0) != (ttl == 0) {
			s.Errorf("%s: %v of the TTL remain", name, left)
		}
	}
	r := value("over", "1", token(1, 1))
	r.TTL = 1
	s.saveOne(r)
	if r, err := s.Load(s.Context(), "over", token(1, 2)); err != nil || r.Version.Exists() && (r.TTL == 0 || r.TTL > time.Second) {
		s.Errorf("%v of a nanosecond remain (%v)", r.TTL, err)
	}
}

func (s suite) testContext() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if _, err := s.Load(ctx, "x", token(1, 1)); !errors.Is(err, context.Canceled) {
		s.Errorf("%v, want the context's error", err)
	}
	if _, err := s.Save(ctx, []leasemap.Record{value("x", "1", token(1, 2))}); !errors.Is(err, context.Canceled) {
		s.Errorf("%v, want the context's error", err)
	}
}

// Owners that follow each other save batches of the same names at once. Each name keeps the value with the highest token
// that was accepted, and after a load no lower one is.
func (s suite) testConcurrentWriters() {
	const writers, rounds, names = 6, 20, 5
	var mu sync.Mutex
	highest := make(map[string]leasemap.Record)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range rounds {
				var batch []leasemap.Record
				at := token(leasehold.Generation(1+n/4), uint64(1+n*writers+w))
				for i := range names {
					batch = append(batch, value(fmt.Sprint(i), at.String(), at))
				}
				refused, err := s.Save(s.Context(), batch)
				if err != nil {
					if leasehold.KindOf(err) != leasehold.ErrUnavailable { // a conflict
						s.Error(err)
					}
					continue
				}
				mu.Lock()
				for _, r := range batch {
					if !slices.Contains(refused, r.Name) && r.Token.Compare(highest[r.Name].Token) > 0 {
						highest[r.Name] = r
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for name, want := range highest {
		got, err := s.Load(s.Context(), name, token(1000, 1))
		got.Token = want.Token
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			s.Errorf("%s (%v, -want +got):\n%s", name, err, diff)
		}
	}
	if len(highest) != names {
		s.Errorf("%d of %d names were saved", len(highest), names)
	}
}

// An AlarmStore finds the alarms of a range, in pages.
func (s suite) testAlarms() {
	store, is := s.Store.(leasemap.AlarmStore)
	if !is {
		s.Skip("the store has no alarms")
	}
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	half := leasehold.Range{Start: 1 << 63}
	var want []string
	for i := range 100 {
		name := fmt.Sprintf("name-%02d", i)
		r := value(name, "1", token(1, 1))
		r.Key = leasehold.KeyOf(name)
		if i%2 == 0 {
			r.Alarm = noon.Add(time.Duration(i) * time.Minute)
		}
		if i%2 == 0 && i < 50 && half.Contains(r.Key) {
			want = append(want, name)
		}
		s.saveOne(r)
	}
	over := value("name-00-over", "1", token(1, 1))
	over.Key, over.Alarm, over.TTL = half.Last(), noon, time.Nanosecond // the alarm ends with the value
	s.saveOne(over)
	if got := s.load("name-10", token(1, 2), "1", token(1, 1)); !got.Alarm.Equal(noon.Add(10 * time.Minute)) {
		s.Errorf("the alarm is at %v", got.Alarm)
	}
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		page, err := store.Due(s.Context(), half, noon.Add(50*time.Minute), after, 3)
		if err != nil {
			s.Fatal(err)
		}
		if got = append(got, page...); len(page) < 3 {
			break
		}
	}
	if !slices.Equal(got, want) || len(want) < 5 {
		s.Errorf("due: %q, want %q", got, want)
	}
	for _, name := range want {
		s.saveOne(leasemap.Record{Name: name, Token: token(2, 1)})
	}
	if got, err := store.Due(s.Context(), half, noon.Add(50*time.Minute), "", 100); len(got) > 0 || err != nil {
		s.Errorf("due after deletion: %q, %v", got, err)
	}
}
