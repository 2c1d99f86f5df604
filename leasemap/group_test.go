package leasemap

import (
	"testing"
	"testing/synctest"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// room adds a second map to a server.
func (s *server) room(cfg Config[int]) *Map[int] {
	m := Add(s.group, "rooms", cfg)
	m.use(s.group, s)
	return m
}

func mustGet(t *testing.T, m *Map[int], name string, want int) {
	t.Helper()
	if got, _, err := m.Get(name); err != nil || got != want {
		t.Errorf("%q is %d, %v; want %d", name, got, err, want)
	}
}

// A move has the values of all maps, including changes of each during the copy. Equal names in two maps
// are different values.
func TestGroupMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRealm(t, 2, Config[string]{})
		a, b := r.servers[0], r.servers[1]
		from, to := a.room(Config[int]{}), b.room(Config[int]{})
		set := func(name string, value int) {
			t.Helper()
			if _, err := from.Set(t.Context(), name, value); err != nil {
				t.Error(err)
			}
		}
		a.mustSet(t, "x", "1")
		set("x", 1)
		set("kept", 2)
		if err := r.move(t.Context(), 1, func() {
			set("x", 3)
			a.mustSet(t, "x", "2")
			a.mustSet(t, "created", "1")
		}); err != nil {
			t.Fatal(err)
		}
		b.has(t, "x", "2")
		b.has(t, "created", "1")
		mustGet(t, to, "x", 3)
		mustGet(t, to, "kept", 2)
		if a.Len()+from.Len() != 0 {
			t.Errorf("%d and %d names are left at the source", a.Len(), from.Len())
		}
		_, _, err := from.Get("x")
		wantKind(t, err, leasehold.ErrNotOwner)
		if err := r.move(t.Context(), 0, nil); err != nil { // back
			t.Fatal(err)
		}
		mustGet(t, from, "x", 3)
	})
}

// A server without a map refuses an import with a value of it, and stages nothing; without such a value it
// does not matter.
func TestGroupWithMissingMap(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	a, b := r.servers[0], r.servers[1]
	rooms := a.room(Config[int]{})
	a.mustSet(t, "x", "1")
	if _, err := rooms.Set(t.Context(), "x", 1); err != nil {
		t.Fatal(err)
	}
	p := a.exported(t)
	_, err := b.receive(t.Context(), p)
	wantKind(t, err, leasehold.ErrInvalid)
	if b.Len() != 0 {
		t.Errorf("%d names are staged after a refusal", b.Len())
	}
	r.set(0, 1) // the move has failed
	if err := rooms.Delete(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if err := r.move(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	b.has(t, "x", "1")
}

// A full map refuses the import for all maps.
func TestGroupWithFullMap(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	a, b := r.servers[0], r.servers[1]
	from, to := a.room(Config[int]{}), b.room(Config[int]{Max: 1})
	a.mustSet(t, "x", "1")
	for _, name := range []string{"1", "2"} {
		if _, err := from.Set(t.Context(), name, 1); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.receive(t.Context(), a.exported(t))
	wantKind(t, err, leasehold.ErrLimit)
	if b.Len()+to.Len() != 0 {
		t.Errorf("%d and %d names are staged after a refusal", b.Len(), to.Len())
	}
}

// Servers of earlier versions have one map, without a name. Its records are the same in a group, and they refuse
// records of other maps.
func TestGroupWithEarlierVersions(t *testing.T) {
	r := newRealm(t, 2, Config[string]{})
	a := r.servers[0]
	rooms := a.room(Config[int]{})
	a.mustSet(t, "x", "1")
	alone := a.exported(t).records
	want := "\x01\x00\x01x\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\"1\"\n"
	if len(alone) != 1 || string(alone[0]) != want {
		t.Errorf("records %q, want %q", alone, want)
	}
	r.set(0, 1)
	if _, err := rooms.Set(t.Context(), "x", 1); err != nil {
		t.Fatal(err)
	}
	both := a.exported(t).records
	if len(both) != 3 || string(both[0]) != want || string(both[1]) != "\x01\x02\x05rooms" {
		t.Fatalf("records %q", both)
	}
	if _, err := parseRecord(both[1]); leasehold.KindOf(err) != leasehold.ErrInvalid {
		t.Errorf("a record that selects a map is a record of a value: %v", err)
	}
	for _, bad := range []string{"\x01\x02", "\x01\x02\x06rooms", "\x01\x02\x05rooms!"} {
		_, err := r.servers[1].receive(t.Context(), &transfer{realm: r, records: [][]byte{[]byte(bad)}})
		wantKind(t, err, leasehold.ErrInvalid)
	}
}

// The owner may call callbacks before the maps have it. They wait for that.
func TestGroupCallbacksWaitForTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		calls := make(chan string, 4)
		as := owner.Config{
			OnGrant:   func([]leasehold.Lease) { calls <- "grant" },
			OnSuspend: func([]leasehold.Lease) { calls <- "suspend" },
			OnResume:  func([]leasehold.Lease) { calls <- "resume" },
			OnRevoke:  func([]leasehold.Lease, leasehold.Cause) { calls <- "revoke" },
		}
		ready := make(chan struct{})
		g.callbacks(&as, ready)
		go as.OnGrant(nil)
		go as.OnSuspend(nil)
		go as.OnResume(nil)
		go as.OnRevoke(nil, leasehold.CauseMoved)
		if synctest.Wait(); len(calls) != 0 {
			t.Errorf("%s was called", <-calls)
		}
		close(ready)
		if synctest.Wait(); len(calls) != 4 {
			t.Errorf("%d callbacks were called, want 4", len(calls))
		}
	})
}
