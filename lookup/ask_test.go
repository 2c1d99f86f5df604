package lookup_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const (
	poll = 5 * time.Second // the default
	// leaderStay is the maximum time until a lookup leaves its first leader.
	leaderStay = (lookup.FirstStay + 1) * poll
)

// requestsDuring returns how many requests each manager receives in the given time.
func requestsDuring(d time.Duration, managers ...*manager) (counts []int) {
	for _, m := range managers {
		m.requests()
	}
	elapse(d)
	for _, m := range managers {
		counts = append(counts, len(m.requests()))
	}
	return counts
}

// Lookups avoid load on the leader, which serves the owners. They send requests to standbys, independent
// of the manager that replied first and of broadcasts of a leader that they have left.
// Seeds make their random choices repeatable.
func TestLookupsPreferStandbys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1, m2, m3 := g.start("m1", 1), g.start("m2", 1), g.start("m3", 1)
		m2.relay(1)
		m3.relay(1)
		const lookups, minute = 30, 30 * 12 // requests in a minute
		for seed := range uint64(lookups) {
			g.openSeeded(g.config("m1", "m2", "m3"), seed)
		}
		if len(m1.requests()) == 0 {
			t.Fatal("no lookup has sent its first request to the leader")
		}
		elapse(leaderStay)
		m1.push(t, 1, 2)
		m2.relay(2)
		m3.relay(2)
		if n := requestsDuring(time.Minute, m1, m2, m3); n[0] != 0 || n[1] < minute/6 || n[2] < minute/6 || n[1]+n[2] < minute {
			t.Errorf("%d requests to the leader, %d and %d to standbys", n[0], n[1], n[2])
		}

		m2.lead(2) // failover
		m1.relay(2)
		elapse(leaderStay)
		if n := requestsDuring(time.Minute, m1, m2, m3); n[1] != 0 || n[0]+n[2] < minute {
			t.Errorf("after a failover: %d requests to the new leader, %d and %d to standbys", n[1], n[0], n[2])
		}

		g.stop(m3)
		elapse(leaderStay)
		if n := requestsDuring(time.Minute, m1, m2); n[1] != 0 || n[0] < minute {
			t.Errorf("after the crash of a standby: %d requests to the leader, %d to the other standby", n[1], n[0])
		}
		m3 = g.start("m3", 2)
		m3.relay(2)
		elapse((lookup.StandbyStay + 1) * poll)
		// A lookup that has not left the leader yet may try it for a while.
		if n := requestsDuring(time.Minute, m1, m2, m3); n[1] > minute/6 || n[0] < minute/6 || n[2] < minute/6 {
			t.Errorf("an hour after its restart: %d requests to the leader, %d and %d to standbys", n[1], n[0], n[2])
		}
	})
}

// A lookup that has left the leader returns only if there is no standby.
func TestLeaderIsLastChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1 := g.start("m1", 1)
		l := g.open(g.config("m1", "m2", "m3", "m4"))
		var standbys []*manager
		for _, name := range []string{"m2", "m3", "m4"} {
			standbys = append(standbys, g.start(name, 1))
			standbys[len(standbys)-1].relay(1)
		}
		elapse(time.Minute + leaderStay)
		m1.requests()
		for range standbys[1:] {
			for i, n := range requestsDuring(2*poll, standbys...) {
				if n > 0 {
					g.stop(standbys[i])
					standbys = append(standbys[:i], standbys[i+1:]...)
					break
				}
			}
		}
		elapse(2 * poll)
		if n := len(m1.requests()); n > 0 || l.Age() > poll+2*time.Second {
			t.Errorf("%d requests to the leader, age of the table %v", n, l.Age())
		}
		g.stop(standbys[0])
		if n := requestsDuring(poll, m1)[0]; n == 0 {
			t.Error("no request to the leader, the only manager left")
		}
	})
}

// If only the leader has a current table, lookups stay with it. They try other managers at times, which
// does not delay their table, and switch to a standby when one is available.
func TestLookupsStayWithLeaderWithoutStandby(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*group, *manager)
	}{
		{"others are down", func(g *group, m *manager) { g.stop(m) }},
		{"others do not reply", func(_ *group, m *manager) { m.stopReplying() }},
		{"others have no table", func(_ *group, m *manager) { m.standbyWithoutTable() }},
		{"others have lost the leader", func(_ *group, m *manager) { m.relayOf(1, time.Minute) }},
		{"others have too many lookups", func(_ *group, m *manager) { m.refuse(leasehold.ErrLimit) }},
	} {
		for _, managers := range []int{2, 3, 9} {
			t.Run(fmt.Sprintf("%s, of %d", c.name, managers), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGroup(t)
					g.start("m1", 1)
					names, others := []string{"m1"}, []*manager(nil)
					for i := 2; i <= managers; i++ {
						names = append(names, fmt.Sprintf("m%d", i))
						others = append(others, g.start(names[i-1], 1))
						c.fault(g, others[i-2])
					}
					cfg := g.config(names...)
					cfg.Stale = 3 * poll
					found := false
					cfg.OnLoss = func(losses []leasehold.Loss) {
						if found {
							t.Errorf("lost: %v", losses)
						}
					}
					l := g.open(cfg)
					elapse(cfg.Stale) // one of nine managers has the table
					found = true
					for _, m := range others {
						m.requests()
					}
					for range 3600 {
						elapse(time.Second)
						if l.Age() > poll+2*time.Second {
							t.Fatalf("age of the table is %v", l.Age())
						}
					}
					tries := 0
					for _, m := range others {
						tries += len(m.requests())
					}
					if tries > 40 {
						t.Errorf("%d requests to the others in an hour", tries)
					}
					back := g.start("m2", 1)
					back.relay(1)
					elapse(time.Duration(managers-1) * 12 * time.Minute)
					if n := requestsDuring(time.Minute, back)[0]; n < 11 {
						t.Errorf("%d requests in a minute to a standby that has restarted", n)
					}
				})
			})
		}
	}
}

// A standby that has lost the leader keeps replying with its old table. Its lookups find the one manager that has
// the current table, among many without it and without knowing the leader.
func TestLookupLeavesManagerWithOldTable(t *testing.T) {
	for _, managers := range []int{2, 3, 9} {
		t.Run(fmt.Sprint(managers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t)
				var all []*manager
				var names []string
				for i := range managers {
					names = append(names, fmt.Sprintf("m%d", i+1))
					all = append(all, g.start(names[i], 1))
					all[i].relay(1)
				}
				l := g.open(g.config(names...))
				elapse(time.Minute)
				for _, m := range all[1:] {
					m.relayOf(1, 11*time.Second)
				}
				all[0].lead(3)
				elapse(poll + time.Second)
				wantOwner(t, l, 7, "b:1")
				if l.Age() > poll+2*time.Second {
					t.Errorf("age of the table is %v", l.Age())
				}
			})
		})
	}
}

// If all managers have lost the leader, a lookup sends one request at a time, round-robin.
func TestRoundRobinIfAllTablesAreOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1, m2, m3 := g.start("m1", 1), g.start("m2", 1), g.start("m3", 1)
		for _, m := range []*manager{m1, m2, m3} {
			m.relayOf(1, 11*time.Second)
		}
		g.open(g.config("m1", "m2", "m3", "m4")) // m4 is down
		elapse(2 * poll)
		n := requestsDuring(time.Minute, m1, m2, m3)
		if all := n[0] + n[1] + n[2]; min(n[0], n[1], n[2]) < 2 || all > 20 {
			t.Errorf("%v requests in a minute", n)
		}
	})
}

// With a single manager the request rate stays bounded, for any reply.
func TestRequestRateAtSingleManagerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m := g.start("m", 1)
		g.open(g.config("m"))
		m.relayOf(1, 15*time.Second)
		elapse(time.Minute)
		for what, fault := range map[string]func(){
			"has no table":     m.standbyWithoutTable,
			"has an old table": func() { m.relayOf(1, 15*time.Second) },
			"sends invalid messages": func() {
				m.respond(func(*leaseholdv1.FollowRequest) *leaseholdv1.FollowResponse { return &leaseholdv1.FollowResponse{} })
			},
			"leads": func() { m.lead(1) },
		} {
			fault()
			if n := requestsDuring(time.Minute, m)[0]; n == 0 || n > 30 {
				t.Errorf("a manager that %s: %d requests in a minute", what, n)
			}
		}
	})
}

// A lookup reaches a leader that is not in Config.Managers by redirects, also after an outage of the leader.
func TestLookupFollowsRedirectToUnlistedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		m1 := g.start("m1", 1)
		for _, name := range []string{"m2", "m3"} {
			g.start(name, 1).redirectTo(m1.addr)
		}
		l := g.open(g.config("m2", "m3"))
		for range 3600 {
			elapse(time.Second)
			if l.Age() > poll+2*time.Second {
				t.Fatalf("age of the table is %v", l.Age())
			}
		}
		m1.stopReplying()
		elapse(20 * time.Second)
		m1.lead(1)
		elapse(2 * poll)
		if l.Age() > poll+2*time.Second {
			t.Errorf("after an outage of the leader, age of the table is %v", l.Age())
		}
	})
}
