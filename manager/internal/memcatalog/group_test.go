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

// A committed catalog survives changes of leader and restarts. A new group delays grants and logs
// why, and followers receive the leader.
func TestCatalogSurvivesLeaderChanges(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		begun := time.Now()
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		leader, c := cl.leader(members...)
		if took := time.Since(begun); took < longest || !cl.logged("fewer than a majority of the managers have a catalog") {
			t.Errorf("a new group has a catalog after %v, or does not log the delay", took)
		}
		if o, err := leader.SaveCatalog(t.Context(), with(c, "a", "b")); o != storage.Done || err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		if o, err := leader.SaveCatalog(t.Context(), with(c, "c")); o != storage.Conflict || err != nil {
			t.Errorf("write with a stale version: %v, %v", o, err)
		}
		for _, s := range members {
			notified := slices.ContainsFunc(s.events(), func(e bylease.Event) bool {
				l, ok := e.(bylease.Leads)
				return ok && l.Manager == leader.id
			})
			if notified == (s == leader) {
				t.Errorf("%s: notified of the leader: %v", s.id, notified)
			}
			if s != leader {
				if _, err := s.Catalog(t.Context()); leasehold.KindOf(err) != leasehold.ErrNotLeader {
					t.Errorf("catalog of a follower: %v", err)
				}
			}
		}
		for round := range 4 {
			term, _ := leader.leads()
			leader.stepDown()
			before := leader
			next, c := cl.leader(members...)
			if got := names(c); !slices.Equal(got, []leasehold.Namespace{"a", "b"}) {
				t.Fatalf("round %d: namespaces %v, want a and b", round, got)
			}
			if now, _ := next.leads(); now <= term {
				t.Errorf("term %d follows %d", now, term)
			}
			if round%2 == 1 && before != next { // a restarted manager receives the catalog again
				before.stop()
				i := slices.Index(members, before)
				members[i] = cl.start(i)
				time.Sleep(5 * time.Second)
			}
			leader, _ = cl.leader(members...)
		}
	})
}

// A leader receives every renewal in time. Resign alone does not release its lease; after it steps
// down it does not lead again.
func TestLeadershipFollowsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		leader, _ := cl.leader(members...)
		term, _ := leader.leads()
		for range 200 {
			time.Sleep(50 * time.Millisecond)
			now, left := leader.leads()
			if now != term || left < 500*time.Millisecond || left > 2*time.Second {
				t.Fatalf("term %d for another %v, want term %d for 0.5 s to 2 s", now, left, term)
			}
		}
		leader.Resign()
		time.Sleep(5 * time.Second)
		if now, _ := leader.leads(); now != term {
			t.Error("Resign released the lease")
		}
		leader.stepDown()
		if _, err := leader.Catalog(t.Context()); leasehold.KindOf(err) != leasehold.ErrNotLeader {
			t.Errorf("catalog of a former leader: %v", err)
		}
		if _, err := leader.Load(t.Context(), "x"); leasehold.KindOf(err) != leasehold.ErrNotLeader {
			t.Errorf("table of a former leader: %v", err)
		}
		next, c := cl.leader(members...)
		if next == leader {
			t.Error("a manager that resigned leads again")
		}
		next.StepDown(term, 0) // an earlier term, of another manager
		time.Sleep(5 * time.Second)
		if now, _ := next.leads(); now <= term {
			t.Error("StepDown of an earlier term released the lease")
		}
		c.Term = term
		if o, err := next.SaveCatalog(t.Context(), with(c, "late")); o != storage.Conflict || err != nil {
			t.Errorf("write of an earlier term: %v, %v", o, err)
		}
	})
}

// A manager is not ready before it votes and has the catalog.
func TestReady(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		leader, _ := cl.leader(members...)
		i := slices.IndexFunc(members, func(s *member) bool { return s != leader })
		members[i].stop()
		again := cl.start(i)
		time.Sleep(2 * time.Second) // it has the catalog, and does not vote yet
		if again.Ready() {
			t.Error("a manager that does not vote is ready")
		}
		time.Sleep(time.Second)
		if !again.Ready() || !leader.Ready() {
			t.Error("a manager that votes and has the catalog is not ready")
		}
	})
	inBubble(t, func(t *testing.T, cl *cluster) {
		alone := cl.start(0)
		time.Sleep(time.Minute)
		if alone.Ready() {
			t.Error("a manager without the catalog is ready")
		}
	})
}

// Reading the catalog fails at the deadline, and when leadership ends. A catalog that is too large
// is rejected.
func TestCatalogErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1)} // the third may have a catalog
		time.Sleep(30 * time.Second)
		i := slices.IndexFunc(members, func(s *member) bool { term, _ := s.leads(); return term != 0 })
		if i < 0 {
			t.Fatal("no leader after 30 s")
		}
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := members[i].Catalog(ctx); leasehold.KindOf(err) != leasehold.ErrUnavailable || time.Since(begun) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := members[i].Catalog(t.Context())
			failed <- err
		}()
		synctest.Wait()
		members[i].stepDown()
		select {
		case err := <-failed:
			if leasehold.KindOf(err) != leasehold.ErrNotLeader {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the read does not end with the leadership")
		}
		large := &storage.Catalog{Namespaces: []storage.Namespace{{Name: "x", Static: make([]storage.StaticSlot, 1<<18)}}}
		for j := range large.Namespaces[0].Static {
			large.Namespaces[0].Static[j] = storage.StaticSlot{Start: leasehold.Key(j), Owner: "o"}
		}
		if o, err := members[i].SaveCatalog(t.Context(), large); o != storage.Conflict || leasehold.KindOf(err) != leasehold.ErrLimit {
			t.Errorf("write of a catalog of several megabytes: %v, %v", o, err)
		}
	})
}

// The end of leadership that a leader receives is never after the end of its lease, also when
// the lease is not renewed any more. It has ceased to lead when the next leader starts.
func TestLeadershipEndsWithLease(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		old, _ := cl.leader(members...)
		check := func() {
			t.Helper()
			term, left := old.leads()
			if most := old.Remaining(); term != 0 && left > most {
				t.Fatalf("leadership for another %v, but the lease lasts for %v", left, most)
			}
		}
		for range 1000 {
			time.Sleep(7 * time.Millisecond)
			check()
		}
		for _, s := range members {
			if s != old {
				cl.net.Cut(old.ID(), s.ID())
				cl.net.Cut(s.ID(), old.ID())
			}
		}
		for range 1000 {
			time.Sleep(7 * time.Millisecond)
			check()
			for _, s := range members {
				if term, _ := s.leads(); s != old && term != 0 {
					if before, left := old.leads(); before != 0 {
						t.Fatalf("two leaders: the former one leads for another %v", left)
					}
					return
				}
			}
		}
		t.Error("no other manager took over")
	})
}

// A leader whose calls reach no other manager steps down, and one with connections takes over.
func TestIsolatedLeaderStepsDown(t *testing.T) {
	for i := range 3 {
		inBubble(t, func(t *testing.T, cl *cluster) {
			cl.isolated[ids(3)[i].Manager] = true
			members := []*member{cl.start(0), cl.start(1), cl.start(2)}
			deadline := time.Now().Add(2 * time.Minute)
			for ; time.Now().Before(deadline); time.Sleep(time.Second) {
				if leader, _ := cl.leaderWithin(3*time.Second, members...); leader != nil && leader != members[i] {
					return
				}
			}
			t.Error("no other manager leads after 2 minutes")
		})
	}
}

// A manager that does not receive the leader's datagrams does not vote, is not ready, and logs it once.
func TestFollowerDeafToLeaderIsNotReady(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		leader, _ := cl.leader(members...)
		time.Sleep(5 * time.Second)
		i := slices.IndexFunc(members, func(s *member) bool { return s != leader })
		if !members[i].Ready() {
			t.Fatal("the follower is not ready before the fault")
		}
		cl.net.Cut(leader.ID(), members[i].ID())
		time.Sleep(10 * time.Second)
		if members[i].Ready() || !cl.logged("datagrams do not arrive") {
			t.Error("the follower is ready or does not log the lost datagrams")
		}
		if n := strings.Count(cl.log(), "datagrams do not arrive"); n != 1 {
			t.Errorf("lost datagrams were logged %d times, want once", n)
		}
		cl.net.Mend(leader.ID(), members[i].ID())
		time.Sleep(5 * time.Second)
		if !members[i].Ready() {
			t.Error("the follower is not ready after the fault")
		}
	})
}

// The next term is above the highest one that any process has seen, even if wall clocks are behind
// it, and the takeover does not wait for the clocks.
func TestNextTermIsAboveSeenTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		leader, _ := cl.leader(members...)
		term, _ := leader.leads()
		seen := leasehold.Term(time.Now().Add(30 * 24 * time.Hour).UnixMilli())
		begun := time.Now()
		for _, s := range members {
			s.StepDown(0, seen)
		}
		leader.stepDown()
		next, _ := cl.leader(members...)
		if now, _ := next.leads(); now <= seen || now <= term || time.Since(begun) > 10*time.Second {
			t.Errorf("after %v the term is %d, want above %d within 10 s", time.Since(begun), now, seen)
		}
	})
}

// A manager with other settings that starts later is logged by the leader and by itself.
func TestMismatchedManagerStartsLater(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		cl.start(0)
		cl.start(1)
		time.Sleep(20 * time.Second)
		if !cl.logged("call to a manager of the group failed") {
			t.Fatal("the missing manager is not logged")
		}
		cl.start(2, func(c *memcatalog.Config) { c.Peers[0].Manager = "elsewhere:7400" })
		time.Sleep(20 * time.Second)
		if !cl.logged("rejects this leader") || !cl.logged("this manager does not take part") {
			t.Error("the mismatch is not logged on both sides")
		}
	})
}

// A manager with other settings does not lead, and the leader logs it.
func TestMismatchedManagerDoesNotTakePart(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1), cl.start(2, func(c *memcatalog.Config) { c.Longest += time.Second })}
		time.Sleep(30 * time.Second)
		leading := 0
		for _, s := range members {
			if term, _ := s.leads(); term != 0 {
				leading++
			}
		}
		if term, _ := members[2].leads(); leading != 1 || term != 0 {
			t.Errorf("%d lead; the mismatched one leads: %v", leading, term != 0)
		}
		if !cl.logged("rejects this leader") || !cl.logged("its managers, times or key differ") {
			t.Error("the mismatch is not logged")
		}
	})
}

func TestInvalidConfig(t *testing.T) {
	for want, change := range map[string]func(*memcatalog.Config){
		"there are 2 managers, want 3 to 9": func(c *memcatalog.Config) { c.Peers = ids(2) },
		"there are 10 managers":             func(c *memcatalog.Config) { c.Peers = ids(10) },
		"m1:7400 is listed twice":           func(c *memcatalog.Config) { c.Peers[0] = c.Peers[1] },
		"is not in its group":               func(c *memcatalog.Config) { c.Self = "m9:7400" },
		"m0:7400 is not on the loopback, so managers need a shared key: set --peer-key-file": func(c *memcatalog.Config) { c.Secure = false },
		"key of 3 bytes": func(c *memcatalog.Config) { c.Key = secret.New("abc") },
	} {
		cfg := memcatalog.Config{Self: "m0:7400", Peers: ids(3), Transport: &flease.Memory{}, Secure: true, Lease: time.Second, Epsilon: time.Millisecond, Drift: 1.2, Longest: longest}
		change(&cfg)
		if _, err := memcatalog.Start(cfg); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
