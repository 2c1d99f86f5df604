package memcatalog_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/manager/internal/memcatalog"
	"github.com/leasehold-dev/leasehold/secret"
)

// A catalog that was written is there whoever leads next; a new group waits, and says
// why; the others know who leads.
func TestCatalogOutlivesLeaders(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		begun := time.Now()
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, c := h.leader(seats...)
		if took := time.Since(begun); took < longest || !h.logged("too few managers remember") {
			t.Errorf("a new group leads after %v, or does not say what it waits for", took)
		}
		if o, err := leader.SaveCatalog(t.Context(), with(c, "a", "b")); o != storage.Done || err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		if o, err := leader.SaveCatalog(t.Context(), with(c, "c")); o != storage.Conflict || err != nil {
			t.Errorf("a write on top of what is not there any more: %v, %v", o, err)
		}
		for _, s := range seats {
			heard := slices.ContainsFunc(s.told(), func(e bylease.Event) bool {
				l, ok := e.(bylease.Leads)
				return ok && l.Manager == leader.id
			})
			if heard == (s == leader) {
				t.Errorf("that %s was told who leads is %v", s.id, heard)
			}
			if s != leader {
				if _, err := s.Catalog(t.Context()); leasehold.KindOf(err) != leasehold.ErrNotLeader {
					t.Errorf("the catalog of one who does not lead: %v", err)
				}
			}
		}
		for round := range 4 {
			term, _ := leader.leads()
			leader.stepDown()
			before := leader
			next, c := h.leader(seats...)
			if got := names(c); !slices.Equal(got, []leasehold.Namespace{"a", "b"}) {
				t.Fatalf("round %d: the namespaces are %v", round, got)
			}
			if now, _ := next.leads(); now <= term {
				t.Errorf("the term was %d, and is %d", term, now)
			}
			if round%2 == 1 && before != next { // a restart forgets, and is told again
				before.leave()
				i := slices.Index(seats, before)
				seats[i] = h.enter(i)
				time.Sleep(5 * time.Second)
			}
			leader, _ = h.leader(seats...)
		}
	})
}

// A leader is told of every renewal in time, and is told that it leads for no longer
// than it does: others that hear nothing from it take over after that.
func TestAuthority(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		term, _ := leader.leads()
		for range 200 {
			time.Sleep(50 * time.Millisecond)
			now, left := leader.leads()
			if now != term || left < 500*time.Millisecond || left > 2*time.Second {
				t.Fatalf("it leads in term %d for another %v", now, left)
			}
		}
		leader.Resign() // that alone gives up nothing
		time.Sleep(5 * time.Second)
		if now, _ := leader.leads(); now != term {
			t.Error("it has given up the lease by which it still leads")
		}
		leader.stepDown()
		if _, err := leader.Catalog(t.Context()); leasehold.KindOf(err) != leasehold.ErrNotLeader {
			t.Errorf("who leads no more has a catalog: %v", err)
		}
		if _, err := leader.Load(t.Context(), "x"); leasehold.KindOf(err) != leasehold.ErrNotLeader {
			t.Errorf("who leads no more has a table: %v", err)
		}
		next, c := h.leader(seats...)
		if next == leader {
			t.Error("who has resigned leads again")
		}
		next.StepDown(term, 0) // that of another, from before
		time.Sleep(5 * time.Second)
		if now, _ := next.leads(); now <= term {
			t.Error("it has given up a lease that nobody wants it to")
		}
		c.Term = term
		if o, err := next.SaveCatalog(t.Context(), with(c, "late")); o != storage.Conflict || err != nil {
			t.Errorf("a write of an earlier term: %v, %v", o, err)
		}
	})
}

// A manager says when the group can do without another: not before it votes, and not
// before it knows the namespaces.
func TestInformed(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		i := slices.IndexFunc(seats, func(s *seat) bool { return s != leader })
		seats[i].leave()
		again := h.enter(i)
		time.Sleep(2 * time.Second) // it has been told the namespaces, and still keeps silent
		if again.Informed() {
			t.Error("it does not vote, and says that it does")
		}
		time.Sleep(time.Second)
		if !again.Informed() || !leader.Informed() {
			t.Error("it votes, and knows the namespaces, and does not say so")
		}
	})
	inHall(t, func(t *testing.T, h *hall) {
		alone := h.enter(0)
		time.Sleep(time.Minute)
		if alone.Informed() {
			t.Error("it knows no namespaces, and says that it does")
		}
	})
}

// Who waits for the catalog is told when it cannot be had any more. What is too large
// to be sent is refused.
func TestCatalogThatIsNotThere(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1)} // the third may know something
		time.Sleep(30 * time.Second)
		i := slices.IndexFunc(seats, func(s *seat) bool { term, _ := s.leads(); return term != 0 })
		if i < 0 {
			t.Fatal("nobody leads")
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := seats[i].Catalog(ctx); leasehold.KindOf(err) != leasehold.ErrUnavailable || time.Since(begun) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := seats[i].Catalog(t.Context())
			failed <- err
		}()
		synctest.Wait()
		seats[i].stepDown()
		select {
		case err := <-failed:
			if leasehold.KindOf(err) != leasehold.ErrNotLeader {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("it waits for what will not come")
		}
		large := &storage.Catalog{Namespaces: []storage.Namespace{{Name: "x", Static: make([]storage.StaticSlot, 1<<18)}}}
		for j := range large.Namespaces[0].Static {
			large.Namespaces[0].Static[j] = storage.StaticSlot{Start: leasehold.Key(j), Owner: "o"}
		}
		if o, err := seats[i].SaveCatalog(t.Context(), large); o != storage.Conflict || leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("a catalog of megabytes: %v, %v", o, err)
		}
	})
}

// A leader is never told that it leads for longer than its lease lasts, also when that is
// not renewed any more; and it has stopped when another begins.
func TestAuthorityEndsWithTheLease(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		old, _ := h.leader(seats...)
		look := func() {
			t.Helper()
			term, left := old.leads()
			if most := old.Remaining(); term != 0 && left > most {
				t.Fatalf("it leads for another %v, and its lease lasts for %v", left, most)
			}
		}
		for range 1000 {
			time.Sleep(7 * time.Millisecond)
			look()
		}
		for _, s := range seats {
			if s != old {
				h.net.Cut(old.ID(), s.ID())
				h.net.Cut(s.ID(), old.ID())
			}
		}
		for range 1000 {
			time.Sleep(7 * time.Millisecond)
			look()
			for _, s := range seats {
				if term, _ := s.leads(); s != old && term != 0 {
					if before, left := old.leads(); before != 0 {
						t.Fatalf("another leads, and it does for another %v", left)
					}
					return
				}
			}
		}
		t.Error("nobody else has taken over")
	})
}

// A leader that reaches nobody gives way to one that does.
func TestDeafLeaderGivesWay(t *testing.T) {
	for i := range 3 {
		inHall(t, func(t *testing.T, h *hall) {
			h.deaf[ids(3)[i].Manager] = true
			seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
			deadline := time.Now().Add(2 * time.Minute)
			for ; time.Now().Before(deadline); time.Sleep(time.Second) {
				if leader, _ := h.leaderWithin(3*time.Second, seats...); leader != nil && leader != seats[i] {
					return
				}
			}
			t.Error("one that reaches nobody keeps the others from leading")
		})
	}
}

// A manager that does not hear the leader's datagrams does not vote, and says so.
func TestSilence(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		time.Sleep(5 * time.Second)
		i := slices.IndexFunc(seats, func(s *seat) bool { return s != leader })
		if !seats[i].Informed() {
			t.Fatal("it is not informed although all is well")
		}
		h.net.Cut(leader.ID(), seats[i].ID())
		time.Sleep(10 * time.Second)
		if seats[i].Informed() || !h.logged("datagrams do not arrive") {
			t.Error("it says that it votes, and does not hear what about")
		}
		if n := strings.Count(h.log(), "datagrams do not arrive"); n != 1 {
			t.Errorf("it says so %d times", n)
		}
		h.net.Mend(leader.ID(), seats[i].ID())
		time.Sleep(5 * time.Second)
		if !seats[i].Informed() {
			t.Error("it hears again, and does not say so")
		}
	})
}

// A term that somebody has heard of is not led in again, nor one below it, whatever wall
// clocks show; and nobody waits for them.
func TestTermsRiseAboveWhatWasHeard(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		term, _ := leader.leads()
		heard := leasehold.Term(time.Now().Add(30 * 24 * time.Hour).UnixMilli())
		begun := time.Now()
		for _, s := range seats {
			s.StepDown(0, heard)
		}
		leader.stepDown()
		next, _ := h.leader(seats...)
		if now, _ := next.leads(); now <= heard || now <= term || time.Since(begun) > 10*time.Second {
			t.Errorf("after %v it leads in term %d; %d was heard of", time.Since(begun), now, heard)
		}
	})
}

// A manager that was not there at first, and was told otherwise, is noticed by both.
func TestOtherGroupComesLate(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		h.enter(0)
		h.enter(1)
		time.Sleep(20 * time.Second)
		if !h.logged("does not answer") {
			t.Fatal("nobody misses the third")
		}
		h.enter(2, func(c *memcatalog.Config) { c.Peers[0].Manager = "elsewhere:7400" })
		time.Sleep(20 * time.Second)
		if !h.logged("refuses to be led") || !h.logged("this one takes no part") {
			t.Error("nobody says that it was told otherwise")
		}
	})
}

// Those who were told of another group are not understood, and the leader says so.
func TestOtherGroup(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2, func(c *memcatalog.Config) { c.Longest += time.Second })}
		time.Sleep(30 * time.Second)
		leading := 0
		for _, s := range seats {
			if term, _ := s.leads(); term != 0 {
				leading++
			}
		}
		if term, _ := seats[2].leads(); leading != 1 || term != 0 {
			t.Errorf("%d lead, and the odd one does: %v", leading, term != 0)
		}
		if !h.logged("refuses to be led") || !h.logged("other managers or times") {
			t.Error("nobody says that one was told otherwise")
		}
	})
}

func TestRefusesConfig(t *testing.T) {
	for want, change := range map[string]func(*memcatalog.Config){
		"there are 2 managers, want 3 to 9": func(c *memcatalog.Config) { c.Peers = ids(2) },
		"there are 10 managers":             func(c *memcatalog.Config) { c.Peers = ids(10) },
		"m1:7400 is there twice":            func(c *memcatalog.Config) { c.Peers[0] = c.Peers[1] },
		"is not one of its group":           func(c *memcatalog.Config) { c.Self = "m9:7400" },
		"m0:7400 is not on the loopback, so that managers need a key by which they know each other: give the same to all with --peer-key-file": func(c *memcatalog.Config) { c.Secure = false },
		"key of 3 bytes": func(c *memcatalog.Config) { c.Key = secret.New("abc") },
	} {
		cfg := memcatalog.Config{Self: "m0:7400", Peers: ids(3), Transport: &flease.Memory{}, Secure: true, Lease: time.Second, Epsilon: time.Millisecond, Drift: 1.2, Longest: longest}
		change(&cfg)
		if _, err := memcatalog.Start(cfg); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
