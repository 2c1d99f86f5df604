package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// looking connects a viewer to the dashboard of a fake manager. Read updates the displayed
// state.
func looking(t *testing.T, w *world) (c *client, read func()) {
	t.Helper()
	s := newHubs(admin.NewLocal(w.fakeAdmin), 2)
	t.Cleanup(s.close)
	h, v, err := s.join(&visitor{}, "pool", "")
	if err != nil {
		t.Fatal(err)
	}
	c = newClient()
	return c, func() {
		t.Helper()
		for _, f := range h.take(v) {
			if err := c.take(f.plain()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// leaders are the leaders in the events.
func (c *client) leaders() (terms []string) {
	for _, e := range c.events {
		if e.Leader != nil {
			terms = append(terms, fmt.Sprint(uint64(e.Leader.Term)))
		}
	}
	return terms
}

// A new leader appears in the events, although the watch breaks when the old one fails; a leader that
// stays appears only once.
func TestNewLeaderIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{fakeAdmin: newFakeAdmin()}
		c, read := looking(t, w)
		time.Sleep(2 * time.Second)
		for _, term := range []uint64{0, 1, 1, 2} {
			w.set(func() { w.term = term })
			w.hangUp()
			time.Sleep(2 * time.Second)
		}
		read()
		if got := strings.Join(c.leaders(), " "); got != "1 2 3" {
			t.Errorf("the leaders of terms %q are among the events, want 1 2 3", got)
		}
	})
}

// If a manager responds but the watch fails, the table is marked as stale.
func TestFailedWatchMarksTableAsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{fakeAdmin: newFakeAdmin()}
		c, read := looking(t, w)
		time.Sleep(2 * time.Second)
		since := time.Now().UnixMilli()
		w.set(func() { w.deaf = leasehold.Errorf("watch", leasehold.ErrLimit, "", "256 are watching already") })
		w.hangUp()
		time.Sleep(2 * time.Second)
		read()
		if c.live.Stale != nil {
			t.Errorf("stale after only 2 s: %v", c.live.Stale)
		}
		time.Sleep(4 * time.Second)
		read()
		if st := c.live.Stale; st == nil || st.Since != since || !strings.Contains(st.Why, "256 are watching") {
			t.Fatalf("stale after 6 s: %+v, want since %d and the watch limit", st, since)
		}
		w.set(func() { w.deaf = nil })
		w.step(1, false, 1, false)
		time.Sleep(2 * time.Second)
		read()
		if diff := c.differs(w.table); c.live.Stale != nil || diff != "" {
			t.Errorf("with the watch back: %v, %s", c.live.Stale, diff)
		}
	})
}

// A viewer that connects while the watch fails receives the reason, and is not blocked.
func TestViewerReceivesReasonOfFailedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{fakeAdmin: newFakeAdmin()}
		w.deaf = leasehold.Errorf("watch", leasehold.ErrLimit, "", "256 are watching already")
		c, read := looking(t, w)
		time.Sleep(5 * time.Second)
		read()
		if st := c.live.Stale; st == nil || !strings.Contains(st.Why, "256 are watching") {
			t.Errorf("stale: %+v, want the watch limit", st)
		}
	})
}

// A deleted namespace is not displayed; a new one of the same name is, from its own
// start.
func TestNamespaceIsDeletedAndRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{fakeAdmin: newFakeAdmin()}
		c, read := looking(t, w)
		for i := range 5 {
			w.step(leasehold.Key(i)<<60, true, i, true)
		}
		time.Sleep(2 * time.Second)
		read()
		if c.table == nil {
			t.Fatal("there is no table")
		}
		w.set(func() { w.absent = true })
		time.Sleep(3 * time.Second)
		read()
		if c.table != nil || c.live.Stale != nil {
			t.Errorf("the table of a namespace that is gone is shown; stale: %v", c.live.Stale)
		}
		w.set(func() { w.absent, w.table, w.past = false, table.New(), nil })
		w.step(3, true, 1, false)
		time.Sleep(3 * time.Second)
		read()
		if diff := c.differs(w.table); diff != "" || len(c.events) != 2 {
			t.Errorf("of the new one, %d events are shown, want a grant and a leader: %s", len(c.events), diff)
		}
	})
}
