package memcatalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/manager/internal/memcatalog"
	"github.com/leasehold-dev/leasehold/secret"
)

func key(c *memcatalog.Config)      { c.Key = secret.New("the key of all of them") }
func otherKey(c *memcatalog.Config) { c.Key = secret.New("another one, by mistake") }

// follower returns the index of a member that does not lead.
func follower(members []*member, leader *member) int {
	return slices.IndexFunc(members, func(s *member) bool { return s != leader })
}

// A new group starts when all managers are up. One with another key does not count, and both it
// and the leader report why.
func TestNewGroupWaitsForManagerWithOtherKey(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0, key), cl.start(1, key), cl.start(2, otherKey)}
		if leader, _ := cl.leaderWithin(time.Minute, members...); leader != nil {
			t.Fatal("the group has a leader, although one of its managers cannot vote")
		}
		i := slices.IndexFunc(members, func(s *member) bool { term, _ := s.leads(); return term != 0 })
		if i < 0 || i == 2 {
			t.Fatalf("member %d leads, want 0 or 1", i)
		}
		if missing := fmt.Sprint(members[i].Missing()); !strings.Contains(missing, "m2:7400") || !strings.Contains(missing, "key differ") {
			t.Errorf("missing: %s, want m2 and its key", missing)
		}
		if why := members[2].NotReadyReason(); !strings.Contains(why, "another --peer-key-file") {
			t.Errorf("manager with another key: not ready because %q", why)
		}
	})
}

// A new group that may rebuild its catalog does not do so while a manager refuses its leader: its settings show that
// not all agree about the group.
func TestNoRebuildWhileAManagerRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		rebuild := func(c *memcatalog.Config) { c.Rebuild = true }
		members := []*member{cl.start(0, key, rebuild), cl.start(1, key, rebuild), cl.start(2, otherKey, rebuild)}
		if leader, _ := cl.leaderWithin(time.Minute, members...); leader != nil {
			t.Fatal("the group has a leader with a catalog, although a manager refuses it")
		}
		members[2].stop()
		cl.leader(members[:2]...)
	})
}

// A manager that is restarted with another key is a voter neither for itself nor for the others,
// until it is restarted with the right key.
func TestOtherKeyDoesNotVote(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0, key), cl.start(1, key), cl.start(2, key)}
		leader, _ := cl.leader(members...)
		time.Sleep(5 * time.Second)
		for _, s := range members {
			if why := s.StopRisk(); why != "" {
				t.Fatalf("all managers vote, but %s reports: %s", s.id, why)
			}
		}
		i := follower(members, leader)
		members[i].stop()
		members[i] = cl.start(i, otherKey)
		time.Sleep(30 * time.Second)
		if members[i].Ready() {
			t.Error("the manager with another key is ready")
		}
		for _, s := range members {
			if why := s.StopRisk(); !strings.Contains(why, "another --peer-key-file") {
				t.Errorf("%s: stop risk %q", s.id, why)
			}
			if s != members[i] && !s.Ready() {
				t.Errorf("%s, which has the right key, is not ready", s.id)
			}
		}
		if n := strings.Count(cl.log(), "is up and does not vote"); n != 1 {
			t.Errorf("the leader logs the non-voter %d times, want once", n)
		}
		members[i].stop()
		members[i] = cl.start(i, key)
		time.Sleep(2 * time.Second)
		for _, s := range members {
			if s.StopRisk() == "" {
				t.Errorf("%s counts a manager that does not vote yet", s.id)
			}
		}
		time.Sleep(10 * time.Second)
		for _, s := range members {
			if why := s.StopRisk(); why != "" {
				t.Errorf("all managers vote again, but %s reports: %s", s.id, why)
			}
		}
		if !cl.logged("votes again") {
			t.Error("the leader does not log that the manager votes again")
		}
		members[i].stop()
		members[i] = cl.start(i, key)
		time.Sleep(10 * time.Second)
		if n := strings.Count(cl.log(), "is up and does not vote"); n != 1 {
			t.Errorf("after a restart a non-voter was logged %d times, want once in all", n)
		}
	})
}

// Neither a manager that replies to calls while its datagrams are lost nor one that is down is a
// voter, and the problems differ. In a group of five two may be missing.
func TestNonVoterProblems(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		members := []*member{cl.start(0), cl.start(1), cl.start(2)}
		leader, _ := cl.leader(members...)
		i := follower(members, leader)
		for _, s := range members {
			if s != members[i] {
				cl.net.Cut(s.ID(), members[i].ID())
				cl.net.Cut(members[i].ID(), s.ID())
			}
		}
		time.Sleep(30 * time.Second)
		if why := leader.StopRisk(); !strings.Contains(why, string(members[i].id)) || !strings.Contains(why, "firewall") {
			t.Errorf("leader, datagrams of another lost: %q", why)
		}
		if why := members[i].StopRisk(); !strings.Contains(why, "firewall") {
			t.Errorf("manager whose datagrams are lost: %q", why)
		}
		members[i].stop()
		time.Sleep(30 * time.Second)
		if why := leader.StopRisk(); !strings.Contains(why, "it is down or unreachable") {
			t.Errorf("leader, another manager down: %q", why)
		}
		for _, s := range members {
			if s != leader && s != members[i] && !strings.Contains(s.StopRisk(), "down, unreachable, or has another") {
				t.Errorf("follower, another manager down: %q", s.StopRisk())
			}
		}
	})
	inBubble(t, func(t *testing.T, cl *cluster) {
		five := func(c *memcatalog.Config) { c.Peers = ids(5) }
		var members []*member
		for i := range 5 {
			members = append(members, cl.startAs(ids(5)[i].Manager, five))
		}
		leader, _ := cl.leader(members...)
		time.Sleep(5 * time.Second)
		for gone := range 3 {
			if why := leader.StopRisk(); (why == "") != (gone < 2) {
				t.Errorf("%d of five are down: stop risk %q", gone, why)
			}
			i := follower(members, leader)
			members[i].stop()
			members = slices.Delete(members, i, i+1)
			time.Sleep(30 * time.Second)
		}
	})
}

// Logs name managers by their addresses, also the lines of package flease.
func TestLogsNameManagers(t *testing.T) {
	inBubble(t, func(t *testing.T, cl *cluster) {
		cl.start(0)
		cl.start(1)
		odd := cl.start(2, func(c *memcatalog.Config) { c.Longest += time.Second })
		time.Sleep(30 * time.Second)
		logs := cl.log()
		if !strings.Contains(logs, "of=m2:7400") && !strings.Contains(logs, "stranger=m2:7400") {
			t.Errorf("the mismatched manager is not named:\n%s", logs)
		}
		if strings.Contains(logs, fmt.Sprint(odd.ID())) {
			t.Errorf("a Flease ID in the log:\n%s", logs)
		}
		if why := odd.NotReadyReason(); !strings.Contains(why, "--longest-lease") || !strings.Contains(why, ":7400") {
			t.Errorf("mismatched manager: not ready because %q", why)
		}
	})
}
