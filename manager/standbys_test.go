package manager_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// known is the managers that a status lists, the leader with a star, those who are not heard
// in brackets.
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

// Any manager can say who stands by, within seconds; one that is gone is named for a while,
// as one that is not heard.
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
			t.Errorf("after a crash it is %s, want %s", got, want)
		}
		time.Sleep(11 * time.Minute)
		if got, want := known(c.status(others[0])), leader+"* "+others[0]; got != want {
			t.Errorf("long after that it is %s, want %s", got, want)
		}
	})
}

// Who has led is not forgotten when one manager after the other is restarted.
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
					t.Errorf("%s: %v comes after %v", name, l, all[i-1])
				}
			}
			last := all[len(all)-1]
			if last.GetTerm() != began.GetTerm() || last.GetLeader() != began.GetLeader() || !last.GetAt().AsTime().Equal(began.GetAt().AsTime()) {
				t.Errorf("%s remembers from %v on, want from %v", name, last, began)
			}
			for term := began.GetTerm(); term <= c.status(name).GetTerm(); term++ {
				if terms[term] != 1 {
					t.Errorf("%s names %d leaders of term %d", name, terms[term], term)
				}
			}
		}
	})
}

// A group without a store knows its managers by configuration: one that was never heard is
// named all the same.
func TestPeersAreListed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.peers = &peers{members: []string{"m1", "m2", "m3"}}
		c.start("m1")
		if got := known(c.status("m1")); got != "m1 (m2) (m3)" {
			t.Errorf("alone it lists %s", got)
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
