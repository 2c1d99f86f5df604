package demo

import (
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
)

// A way is how statuses get from one service to another in a test: first some
// requests come, then the range is stopped.
type way struct {
	leasehold.Range
	generation leasehold.Generation
	meanwhile  func() // while the copy goes on, before the stop
	stopped    func() // the stop
	broken     int    // fails after so many records; 0 never does

	records [][]byte
}

func (w *way) Generation(leasehold.Key) leasehold.Generation { return w.generation }

var errBroken = errors.New("the way is broken")

func (w *way) Send(record []byte) error {
	if w.broken > 0 && len(w.records) >= w.broken {
		return errBroken
	}
	w.records = append(w.records, append([]byte(nil), record...))
	return nil
}

func (w *way) Stop() error {
	w.meanwhile()
	w.stopped()
	return nil
}

func (w *way) Records() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, r := range w.records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// outgoingOf gives way the method that it has as a field.
type outgoingOf struct{ *way }

func (o outgoingOf) Range() leasehold.Range { return o.way.Range }

// Keys in three buckets, and one in the last of them, outside of the range that
// moves.
const (
	keyA    leasehold.Key = 0x4000_0000_0000_0001
	keyB    leasehold.Key = 0x4000_0000_0000_0002
	keyC    leasehold.Key = 0x5000_0000_0000_0000
	keyD    leasehold.Key = 0x5fff_0000_0000_0000
	outside leasehold.Key = 0x5fff_0000_0000_0001
)

var moving = leasehold.Range{Start: keyA, Limit: outside}

func known(p *presence) map[leasehold.Key]string {
	all := make(map[leasehold.Key]string)
	for i := range p.statuses.buckets {
		for key, s := range p.statuses.buckets[i].known {
			all[key] = s.text
		}
	}
	return all
}

func setAll(t *testing.T, p *presence, number uint64, text string, keys ...leasehold.Key) {
	t.Helper()
	for _, key := range keys {
		if _, err := p.set(key, number, text); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStatusesMove: what was copied, what changed while it was, and nothing else.
func TestStatusesMove(t *testing.T) {
	from, leases, _ := startPresence()
	leases.generation = 3
	setAll(t, from, 1, "old", keyB)
	leases.generation = 4 // of keyB only a status of an earlier tenure is left
	setAll(t, from, 1, "first", keyA, keyC, outside)
	w := &way{Range: moving, generation: 4, stopped: func() { leases.generation = 0 }}
	w.meanwhile = func() {
		setAll(t, from, 2, "second", keyC, outside)
		setAll(t, from, 1, "new", keyD)
	}
	if err := from.export(t.Context(), outgoingOf{w}); err != nil {
		t.Fatal(err)
	}
	if len(w.records) != 4 {
		t.Errorf("%d records were sent, want 2 and the 2 that changed", len(w.records))
	}
	to, leases, _ := startPresence()
	leases.generation = 0
	install, err := to.take(w)
	if err != nil {
		t.Fatal(err)
	}
	if n := to.statuses.count.Load(); n != 0 {
		t.Errorf("%d statuses are there before their lease is", n)
	}
	leases.generation = 9
	install(leasehold.Lease{Range: moving, Generation: 9})
	want := map[leasehold.Key]string{keyA: "first", keyC: "second", keyD: "new"}
	if diff := cmp.Diff(want, known(to)); diff != "" || to.statuses.count.Load() != 3 {
		t.Errorf("%d, -want +got:\n%s", to.statuses.count.Load(), diff)
	}
	if s, err := to.get(keyC); err != nil || s.number != 2 || s.generation() != 9 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// TestNothingIsNotedAfterAnExport, whether it has succeeded or not.
func TestNothingIsNotedAfterAnExport(t *testing.T) {
	for _, broken := range []int{0, 1} {
		p, _, _ := startPresence()
		setAll(t, p, 1, "first", keyA, keyC)
		w := &way{Range: moving, generation: 1, meanwhile: func() {}, stopped: func() {}, broken: broken}
		if err := p.export(t.Context(), outgoingOf{w}); (broken > 0) != errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
		for i := range p.statuses.buckets {
			if n := len(p.statuses.buckets[i].copies); n > 0 {
				t.Errorf("bucket %d notes changes for %d exports", i, n)
			}
		}
	}
}

// TestInstallKeepsToTheLease, which may cover less than what came, and replaces
// what an earlier tenure has left.
func TestInstallKeepsToTheLease(t *testing.T) {
	from, _, _ := startPresence()
	setAll(t, from, 5, "moved", keyA, keyB, keyC, keyD)
	w := &way{Range: moving, generation: 1, meanwhile: func() {}, stopped: func() {}}
	if err := from.export(t.Context(), outgoingOf{w}); err != nil {
		t.Fatal(err)
	}
	to, leases, _ := startPresence()
	setAll(t, to, 7, "left", keyA, keyB, keyC, outside)
	install, err := to.take(w)
	if err != nil {
		t.Fatal(err)
	}
	leases.generation = 2
	install(leasehold.Lease{Range: leasehold.Range{Start: keyB, Limit: keyD}, Generation: 2})
	want := map[leasehold.Key]string{keyA: "left", keyB: "moved", keyC: "moved", outside: "left"}
	if diff := cmp.Diff(want, known(to)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if s, err := to.get(keyA); err != nil || s.number != 0 {
		t.Errorf("what was left of an earlier tenure is served: %+v, %v", s, err)
	}
}

// TestTakeRefuses what makes no sense or does not fit in.
func TestTakeRefuses(t *testing.T) {
	p, _, _ := startPresence()
	if _, err := p.take(&way{records: [][]byte{make([]byte, headSize-1)}}); !errors.Is(err, leasehold.Invalid) {
		t.Errorf("a short record: %v", err)
	}
	p.statuses.count.Store(maxStatuses)
	if _, err := p.take(&way{records: [][]byte{make([]byte, headSize)}}); !errors.Is(err, leasehold.Limit) {
		t.Errorf("no room: %v", err)
	}
}
