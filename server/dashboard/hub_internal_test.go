package dashboard

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A world is a table with random valid changes.
type world struct {
	*fakeAdmin
	newest leasehold.Generation
}

func someone(i int) *table.Holder {
	return &table.Holder{Owner: leasehold.OwnerID(fmt.Sprintf("owner-%d", i)), Session: leasehold.Session{byte(i)}, Addr: "a:1", Weight: 1}
}

// step makes one change: a vacant range is granted, and a held range is vacated or moved, from its
// start or from the key. Adjacent ranges in the same state are included, so that leases that ended
// separately are granted as one.
func (w *world) step(at leasehold.Key, part bool, owner int, move bool) admin.Event {
	keys, e := w.table.At(at)
	if part && at != keys.Start {
		keys.Start = at
	}
	for keys.Limit != 0 && (e.Vacant() || move) {
		next, f := w.table.At(keys.Limit)
		if f.Holder != e.Holder {
			break
		}
		keys.Limit = next.Limit
	}
	switch {
	case e.Vacant():
		w.newest++
		return w.change(table.Granted, keys, w.newest, someone(owner), nil)
	case move:
		w.newest++
		return w.change(table.Moved, keys, w.newest, someone(owner), e.Holder)
	}
	return w.change(table.Vacated, keys, e.Generation, e.Holder, nil)
}

// quietHub returns a hub without goroutines. The test does their work.
func quietHub(of leaseholdv1.AdminServiceServer) *hub {
	h := &hub{client: admin.NewLocal(of), namespace: "pool", epoch: "e", viewers: make(map[*viewer]bool)}
	h.state.live.At = 1
	return h
}

// TestFramesMakeTheTable: with any changes, and with viewers that join, lag, leave and reconnect,
// a client that has applied all frames has the manager's table.
func TestFramesMakeTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{fakeAdmin: newFakeAdmin()}
		h := quietHub(w.fakeAdmin)
		follow := func() {
			if err := h.begin(t.Context(), admin.EventOf(leads())); err != nil {
				t.Fatal(err)
			}
		}
		follow()
		type pair struct {
			client *client
			viewer *viewer
		}
		var all []*pair
		read := func(p *pair) {
			for _, f := range h.take(p.viewer) {
				if err := p.client.take(f.plain()); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				var news []admin.Event
				for range rapid.IntRange(1, 5).Draw(t, "changes") {
					news = append(news, w.step(leasehold.Key(rapid.Uint64().Draw(t, "key")), rapid.Bool().Draw(t, "part"),
						rapid.IntRange(1, 4).Draw(t, "owner"), rapid.Bool().Draw(t, "move")))
				}
				if rapid.IntRange(0, 9).Draw(t, "lose") == 0 {
					news = news[1:] // the manager dropped a change
				}
				switch err := h.report(news); {
				case errors.Is(err, errGap):
					follow()
				case err != nil:
					t.Fatal(err)
				}
			},
			"many frames": func(t *rapid.T) {
				for range mostRecent + 2 {
					h.mu.Lock()
					h.publish("live", live{At: 2})
					h.mu.Unlock()
				}
			},
			"come":  func(*rapid.T) { all = append(all, &pair{newClient(), h.join("")}) },
			"read":  func(t *rapid.T) { pick(t, all, read) },
			"again": func(t *rapid.T) { pick(t, all, func(p *pair) { h.leave(p.viewer); p.viewer = h.join(p.client.last) }) },
			"":      func(*rapid.T) {},
		})
		if err := h.report([]admin.Event{w.step(7, true, 1, false)}); err != nil {
			follow() // this change reveals a gap at the end
		}
		for i, p := range all {
			read(p)
			if diff := p.client.differs(w.table); diff != "" {
				t.Fatalf("viewer %d: %s", i, diff)
			}
		}
	})
}

func pick[T any](t *rapid.T, from []T, do func(T)) {
	if len(from) > 0 {
		do(from[rapid.IntRange(0, len(from)-1).Draw(t, "index")])
	}
}

// TestSlowViewer: the queue of a viewer that does not read is bounded. The viewer receives a
// snapshot when it reads again.
func TestSlowViewer(t *testing.T) {
	w := &world{fakeAdmin: newFakeAdmin()}
	h := quietHub(w.fakeAdmin)
	if err := h.begin(t.Context(), admin.EventOf(leads())); err != nil {
		t.Fatal(err)
	}
	slow, quick := h.join(""), h.join("")
	c, q := newClient(), newClient()
	for _, f := range h.take(slow) { // the first snapshot
		if err := c.take(f.plain()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 * mostRecent {
		if err := h.report([]admin.Event{w.step(leasehold.Key(i)<<56, true, i%5, true)}); err != nil {
			t.Fatal(err)
		}
		if n := len(slow.queue); n > mostRecent {
			t.Fatalf("%d frames wait for a viewer, want %d at most", n, mostRecent)
		}
		for _, f := range h.take(quick) {
			if err := q.take(f.plain()); err != nil {
				t.Fatal(err)
			}
		}
	}
	frames := h.take(slow)
	for _, f := range frames {
		if err := c.take(f.plain()); err != nil {
			t.Fatal(err)
		}
	}
	if len(frames) != 1 || c.frames["snapshot"] != 2 || c.differs(w.table) != "" {
		t.Errorf("the slow viewer receives %d frames, %v, want one snapshot of the table: %s", len(frames), c.frames, c.differs(w.table))
	}
	if q.frames["snapshot"] != 1 || q.differs(w.table) != "" {
		t.Errorf("the fast viewer receives %v, want one snapshot and then deltas: %s", q.frames, q.differs(w.table))
	}
}

// TestReconnect: a viewer that reconnects receives exactly the missed frames. It receives a
// snapshot from another hub, or after too long a gap.
func TestReconnect(t *testing.T) {
	w := &world{fakeAdmin: newFakeAdmin()}
	h := quietHub(w.fakeAdmin)
	if err := h.begin(t.Context(), admin.EventOf(leads())); err != nil {
		t.Fatal(err)
	}
	change := func(n int) {
		for i := range n {
			if err := h.report([]admin.Event{w.step(leasehold.Key(i)<<56, true, i%5, true)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := h.take(h.join(""))[0].id
	change(3)
	for name, test := range map[string]struct {
		last   string
		frames int
		resync bool
	}{
		"missed frames":      {first, 3, false},
		"nothing missed":     {h.id(), 0, false},
		"another hub":        {"x-1", 1, true},
		"no id":              {"", 1, true},
		"nonsense":           {"e-one", 1, true},
		"of the future":      {"e-99999", 1, true},
		"before the begin":   {"e-0", 1, true},
		"an enormous number": {"e-99999999999999999999", 1, true},
	} {
		v := h.join(test.last)
		if resync := v.resync; resync != test.resync {
			t.Errorf("%s: a snapshot: %v, want %v", name, resync, test.resync)
		}
		if n := len(h.take(v)); n != test.frames {
			t.Errorf("%s: %d frames, want %d", name, n, test.frames)
		}
	}
	change(mostRecent)
	if v := h.join(first); !v.resync {
		t.Error("no snapshot after too long a gap")
	}
}

// TestHubWithoutViewersEnds: a hub without viewers sends no requests, and the next viewer starts a
// new one.
func TestHubWithoutViewersEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeAdmin()
		s := newHubs(admin.NewLocal(f), 2)
		defer s.close()
		for range 2 {
			h, v, err := s.join(&visitor{}, "pool", "")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			if len(h.take(v)) == 0 || f.asked() == 0 {
				t.Fatal("a viewer receives no frames")
			}
			s.leave(h, v)
			time.Sleep(3 * linger)
			before := f.asked()
			time.Sleep(time.Hour)
			if after := f.asked(); after != before {
				t.Errorf("%d requests to the manager in an hour without viewers", after-before)
			}
			s.mu.Lock()
			if len(s.open) != 0 || s.sweep != nil {
				t.Errorf("%d hubs are left", len(s.open))
			}
			s.mu.Unlock()
		}
	})
}

func TestViewersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHubs(admin.NewLocal(newFakeAdmin()), 2)
		for range 2 {
			if _, _, err := s.join(&visitor{}, "pool", ""); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.join(&visitor{}, "pool", ""); leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("a third viewer: %v, want a limit", err)
		}
		s.close()
		if _, _, err := s.join(&visitor{}, "pool", ""); leasehold.KindOf(err) != leasehold.ErrClosed {
			t.Errorf("join after the close: %v, want closed", err)
		}
	})
}

// TestStaleTableIsMarked: the watch of a hub survives a failover. While no manager responds,
// viewers receive the reason and the time since when their table is stale.
func TestStaleTableIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{fakeAdmin: newFakeAdmin()}
		s := newHubs(admin.NewLocal(w.fakeAdmin), 2)
		defer s.close()
		h, v, err := s.join(&visitor{}, "pool", "")
		if err != nil {
			t.Fatal(err)
		}
		c := newClient()
		read := func() {
			t.Helper()
			for _, f := range h.take(v) {
				if err := c.take(f.plain()); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(1500 * time.Millisecond)
		w.step(1, false, 1, false)
		time.Sleep(pollEvery)
		read()
		if c.live.Stale != nil || c.differs(w.table) != "" {
			t.Fatalf("stale: %v, %s", c.live.Stale, c.differs(w.table))
		}
		good := c.live.At
		w.fail(leasehold.Errorf("ask", leasehold.ErrUnavailable, "m2", "the leader does not answer"))
		w.hangUp()
		time.Sleep(10 * time.Second)
		read()
		if st := c.live.Stale; st == nil || st.Since != good || st.Why == "" || c.live.At-good < 9000 {
			t.Fatalf("stale after 10 s without a manager: %+v, want since %d", st, good)
		}
		w.fail(nil)
		w.step(1, false, 2, true)
		time.Sleep(2 * time.Second)
		read()
		if c.live.Stale != nil || c.differs(w.table) != "" {
			t.Fatalf("with the manager back, stale: %v, %s", c.live.Stale, c.differs(w.table))
		}
	})
}
