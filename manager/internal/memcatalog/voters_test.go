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

// follower returns the place of one that does not lead.
func follower(seats []*seat, leader *seat) int {
	return slices.IndexFunc(seats, func(s *seat) bool { return s != leader })
}

// A manager with another key does not count among those without whom a group does not
// begin, and all say why.
func TestGroupDoesNotBeginWithOtherKey(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0, key), h.enter(1, key), h.enter(2, otherKey)}
		if leader, _ := h.leaderWithin(time.Minute, seats...); leader != nil {
			t.Fatal("the group has begun, and one of its managers cannot vote")
		}
		i := slices.IndexFunc(seats, func(s *seat) bool { term, _ := s.leads(); return term != 0 })
		if i < 0 || i == 2 {
			t.Fatalf("%d leads", i)
		}
		if missing := fmt.Sprint(seats[i].Missing()); !strings.Contains(missing, "m2:7400") || !strings.Contains(missing, "another key") {
			t.Errorf("the leader waits for %s", missing)
		}
		if why := seats[2].Uninformed(); !strings.Contains(why, "another --peer-key-file") {
			t.Errorf("the odd one says: %q", why)
		}
	})
}

// A manager that comes back with another key is not counted as one that votes, by
// itself or by others, until it has the right one.
func TestOtherKeyDoesNotVote(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0, key), h.enter(1, key), h.enter(2, key)}
		leader, _ := h.leader(seats...)
		time.Sleep(5 * time.Second)
		for _, s := range seats {
			if why := s.Indispensable(); why != "" {
				t.Fatalf("all is well, and %s says: %s", s.id, why)
			}
		}
		i := follower(seats, leader)
		seats[i].leave()
		seats[i] = h.enter(i, otherKey)
		time.Sleep(30 * time.Second)
		if seats[i].Informed() {
			t.Error("it cannot vote, and says that it does")
		}
		for _, s := range seats {
			if why := s.Indispensable(); !strings.Contains(why, "another --peer-key-file") {
				t.Errorf("%s says: %q", s.id, why)
			}
			if s != seats[i] && !s.Informed() {
				t.Errorf("%s, with which nothing is wrong, is not ready", s.id)
			}
		}
		if n := strings.Count(h.log(), "lives, and does not vote"); n != 1 {
			t.Errorf("the leader says so %d times", n)
		}
		seats[i].leave()
		seats[i] = h.enter(i, key)
		time.Sleep(2 * time.Second)
		for _, s := range seats {
			if s.Indispensable() == "" {
				t.Errorf("%s counts one that does not vote yet", s.id)
			}
		}
		time.Sleep(10 * time.Second)
		for _, s := range seats {
			if why := s.Indispensable(); why != "" {
				t.Errorf("all is well again, and %s says: %s", s.id, why)
			}
		}
		if !h.logged("votes again") {
			t.Error("nobody says that it votes again")
		}
		seats[i].leave()
		seats[i] = h.enter(i, key)
		time.Sleep(10 * time.Second)
		if n := strings.Count(h.log(), "lives, and does not vote"); n != 1 {
			t.Errorf("a restart is no reason to say so, and it was said %d times", n)
		}
	})
}

// Who answers calls, but is not heard by datagrams, does not vote; who is down does not
// either, and the reasons differ. One of five may be missing.
func TestWhoDoesNotVote(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		seats := []*seat{h.enter(0), h.enter(1), h.enter(2)}
		leader, _ := h.leader(seats...)
		i := follower(seats, leader)
		for _, s := range seats {
			if s != seats[i] {
				h.net.Cut(s.ID(), seats[i].ID())
				h.net.Cut(seats[i].ID(), s.ID())
			}
		}
		time.Sleep(30 * time.Second)
		if why := leader.Indispensable(); !strings.Contains(why, string(seats[i].id)) || !strings.Contains(why, "firewall") {
			t.Errorf("of one whose datagrams are lost: %q", why)
		}
		if why := seats[i].Indispensable(); !strings.Contains(why, "firewall") {
			t.Errorf("it says of itself: %q", why)
		}
		seats[i].leave()
		time.Sleep(30 * time.Second)
		if why := leader.Indispensable(); !strings.Contains(why, "it is down, or out of reach") {
			t.Errorf("of one that is down: %q", why)
		}
		for _, s := range seats {
			if s != leader && s != seats[i] && !strings.Contains(s.Indispensable(), "down, out of reach, or has another") {
				t.Errorf("another says of it: %q", s.Indispensable())
			}
		}
	})
	inHall(t, func(t *testing.T, h *hall) {
		five := func(c *memcatalog.Config) { c.Peers = ids(5) }
		var seats []*seat
		for i := range 5 {
			seats = append(seats, h.enterAs(ids(5)[i].Manager, five))
		}
		leader, _ := h.leader(seats...)
		time.Sleep(5 * time.Second)
		for gone := range 3 {
			if why := leader.Indispensable(); (why == "") != (gone < 2) {
				t.Errorf("%d of five are gone: %q", gone, why)
			}
			i := follower(seats, leader)
			seats[i].leave()
			seats = slices.Delete(seats, i, i+1)
			time.Sleep(30 * time.Second)
		}
	})
}

// Logs name managers by their addresses, also what package flease says about them.
func TestLogsNameManagers(t *testing.T) {
	inHall(t, func(t *testing.T, h *hall) {
		h.enter(0)
		h.enter(1)
		odd := h.enter(2, func(c *memcatalog.Config) { c.Longest += time.Second })
		time.Sleep(30 * time.Second)
		logs := h.log()
		if !strings.Contains(logs, "of=m2:7400") && !strings.Contains(logs, "stranger=m2:7400") {
			t.Errorf("nobody names the one that was told otherwise:\n%s", logs)
		}
		if strings.Contains(logs, fmt.Sprint(odd.ID())) {
			t.Errorf("a number that nobody knows:\n%s", logs)
		}
		if why := odd.Uninformed(); !strings.Contains(why, "--longest-lease") || !strings.Contains(why, ":7400") {
			t.Errorf("the odd one says of itself: %q", why)
		}
	})
}
