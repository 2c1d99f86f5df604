package manager_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// known returns the managers that a status lists: the leader with a star, silent managers in brackets.
func known(s *leaseholdv1.GetStatusResponse) string {
	var out []string
	for _, m := range s.GetManagers() {
		name := strings.TrimSuffix(m.GetAddr(), ":7400")
		if m.GetLeads() {
			name += "*"
		}
		if !m.GetHeard() || time.Duration(m.GetHeardAgo()) > 15*time.Second {
			name = "(" + name + ")"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// The status of any manager lists the standbys within seconds; one that has crashed is listed as silent for a while.
func TestStandbysAreListed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for _, name := range []string{"m1", "m2", "m3"} {
			c.start(name)
		}
		c.create("m1", pool())
		leader := strings.TrimSuffix(c.status("m1").GetLeader(), ":7400")
		others := slices.DeleteFunc([]string{"m1", "m2", "m3"}, func(name string) bool { return name == leader })
		time.Sleep(6 * time.Second)
		for _, name := range []string{"m1", "m2", "m3"} {
			if got, want := known(c.status(name)), leader+"* "+others[0]+" "+others[1]; got != want {
				t.Errorf("%s lists %s, want %s", name, got, want)
			}
		}
		c.crash(others[1])
		time.Sleep(30 * time.Second)
		if got, want := known(c.status(others[0])), leader+"* "+others[0]+" ("+others[1]+")"; got != want {
			t.Errorf("after a crash: %s, want %s", got, want)
		}
		time.Sleep(11 * time.Minute)
		if got, want := known(c.status(others[0])), leader+"* "+others[0]; got != want {
			t.Errorf("long after that: %s, want %s", got, want)
		}
	})
}

// The recorded leaderships survive a rolling restart.
func TestLeadershipsSurviveRestarts(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		first := c.status("m1").GetLeaderships()
		began := first[len(first)-1]
		for _, name := range []string{"m1", "m2", "m1", "m2"} {
			c.stop(name)
			other := map[string]string{"m1": "m2", "m2": "m1"}[name]
			eventually(t, time.Minute, other+" leads", func() bool { return c.status(other).GetLeader() == addr(other) })
			c.start(name)
			time.Sleep(10 * time.Second)
		}
		for _, name := range []string{"m1", "m2"} {
			all := c.status(name).GetLeaderships()
			terms := make(map[uint64]int)
			for i, l := range all {
				if l.GetLeader() != "" {
					terms[l.GetTerm()]++
				}
				if i > 0 && (l.GetTerm() > all[i-1].GetTerm() || l.GetAt().AsTime().After(all[i-1].GetAt().AsTime())) {
					t.Errorf("%s: %v follows %v", name, l, all[i-1])
				}
			}
			last := all[len(all)-1]
			if last.GetTerm() != began.GetTerm() || last.GetLeader() != began.GetLeader() || !last.GetAt().AsTime().Equal(began.GetAt().AsTime()) {
				t.Errorf("%s: the record starts with %v, want %v", name, last, began)
			}
			for term := began.GetTerm(); term <= c.status(name).GetTerm(); term++ {
				if terms[term] != 1 {
					t.Errorf("%s: %d leaders of term %d", name, terms[term], term)
				}
			}
		}
	})
}

// A diskless group lists its configured managers, also those that were never up.
func TestPeersAreListed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.peers = &peers{members: []string{"m1", "m2", "m3"}}
		c.start("m1")
		if got := known(c.status("m1")); got != "m1 (m2) (m3)" {
			t.Errorf("a manager alone lists %s", got)
		}
	})
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		time.Sleep(10 * time.Second)
		for _, name := range c.peers.members {
			got := strings.Fields(known(c.status(name)))
			if len(got) != 3 || got[0] != leader+"*" || strings.Contains(strings.Join(got, ""), "(") {
				t.Errorf("%s lists %v, want %s as the leader, and two more", name, got, leader)
			}
		}
	})
}
