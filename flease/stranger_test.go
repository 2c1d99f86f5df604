package flease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secret"
)

// silence is how long a member does not take part after its start.
const silence = 12 * time.Second

// configure sets the number of members in the configuration of nodes that start from now on.
func (s *system) configure(members int) {
	s.config.Members = nil
	for i := range members {
		s.config.Members = append(s.config.Members, Member{ID: ID(i + 1)})
	}
}

// ready returns the members that take part.
func (s *system) ready() (who []ID) {
	for _, id := range []ID{1, 2, 3, 4, 5} {
		if n := s.nodes[id]; n != nil && n.Status().Ready {
			who = append(who, id)
		}
	}
	return who
}

func (s *system) wantReady(ids ...ID) {
	s.t.Helper()
	if got := s.ready(); fmt.Sprint(got) != fmt.Sprint(ids) {
		s.t.Fatalf("%v take part, want %v", got, ids)
	}
}

// refused tries for a minute to acquire a lease that another group holds.
func (s *system) refused(id ID) error {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	l, err := s.nodes[id].Acquire(ctx, "r")
	if err == nil {
		s.t.Fatalf("member %d acquired it, too: %t", id, l.Valid())
	}
	return err
}

// Three members are changed to five, one after another: the first majority of the five must not
// acquire a lease that the three hold.
func TestChangeOfMembersOneByOne(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		held := s.acquire(1, "r")
		s.configure(5)
		s.start(4)
		s.start(5)
		s.kill(3)
		s.start(3)
		err := s.refused(4)
		if leasehold.KindOf(err) != leasehold.ErrUnavailable || !strings.Contains(err.Error(), "while process 1 does") {
			t.Errorf("the error is %v", err)
		}
		if !held.Valid() {
			t.Error("the new members ended the lease of the holder")
		}
		s.wantReady(1, 2)
		for _, pair := range [][2]ID{{1, 3}, {1, 4}, {1, 5}, {2, 3}, {2, 4}, {2, 5}, {3, 1}, {3, 2}, {4, 1}, {4, 2}, {5, 1}, {5, 2}} {
			line := []string{"has other members", fmt.Sprintf("member=%d ", pair[0]), fmt.Sprintf("stranger=%d ", pair[1])}
			if n := s.log.count(line...); n != 1 {
				t.Errorf("member %d logs %d times that %d is a stranger, want once", pair[0], n, pair[1])
			}
		}
		st := s.nodes[4].Status()
		if n := len(st.Strangers); n != 2 || st.Strangers[0].ID != 1 || st.Strangers[0].Waits || st.Strangers[0].Fingerprint == st.Fingerprint || st.Traffic.Strange == 0 {
			t.Errorf("status %+v", st)
		}

		s.kill(2) // the three have lost their majority, and one still takes part
		time.Sleep(2 * silence)
		s.wantReady(1)
		s.kill(1)
		s.start(1)
		s.start(2)
		time.Sleep(silence - time.Second)
		s.wantReady()
		if held.Valid() {
			t.Error("it is still held")
		}
		l := s.acquire(4, "r")
		if l.Fence() <= held.Fence() {
			t.Errorf("fence %d after %d", l.Fence(), held.Fence())
		}
		time.Sleep(2 * time.Second)
		s.wantReady(1, 2, 3, 4, 5)
		if st := s.nodes[4].Status(); len(st.Strangers) != 0 {
			t.Errorf("members with the new configuration are still strangers: %+v", st.Strangers)
		}
	})
}

// A member with a wrong configuration does not stop members that take part, nor a restarted one.
func TestStrangerDoesNotStopMembers(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		right := s.config
		s.configure(5)
		s.start(4)
		s.start(5)
		s.config.Lease += time.Second
		s.kill(3)
		s.start(3) // now there are two groups besides
		held := s.acquire(1, "r")
		time.Sleep(time.Minute)
		s.kill(3)
		s.config = right
		s.start(3)
		time.Sleep(silence + time.Second)
		s.wantReady(1, 2, 3)
		if !held.Valid() {
			t.Error("the lease is lost")
		}
	})
}

// If two groups start at once, the larger one takes part; if they are equal, none does.
func TestGroupsStartAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		five []ID // are configured with five members, the others with three
		want []ID
	}{
		"one is odd":         {[]ID{3}, []ID{1, 2}},
		"three of five":      {[]ID{3, 4, 5}, []ID{3, 4, 5}},
		"neither":            {[]ID{3, 4}, nil},
		"of the same number": {[]ID{2, 3, 4, 5}, []ID{2, 3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T) {
				s := newSystem(t, 3, func(c *Config) { c.Members = nil })
				s.configure(5)
				for _, id := range test.five {
					s.start(id)
				}
				s.configure(3)
				for id := ID(1); id <= 3; id++ {
					if s.nodes[id] == nil {
						s.start(id)
					}
				}
				time.Sleep(5 * silence)
				s.wantReady(test.want...)
			})
		})
	}
}

// Over real networks, members with more addresses exchange packets with members that do not have
// their addresses.
func TestChangeOfMembersOverNetworks(t *testing.T) {
	for name, transport := range map[string]Transport{"UDP": UDP{}, "TCP": TCP{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log diary
			config := func(self ID, of []Member) Config {
				return Config{
					Self: self, Members: of, Lease: time.Second, Epsilon: 100 * time.Millisecond,
					Key: secret.New("0123456789abcdef"), Transport: transport, Logger: log.logger(),
				}
			}
			five := freeMembers(t, 5)
			three := five[:3]
			old := []*Node{launch(t, config(1, three)), launch(t, config(2, three))}
			third := launch(t, config(3, three))
			held, err := old[0].Acquire(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			launch(t, config(4, five))
			fifth := launch(t, config(5, five))
			_ = third.Close(t.Context())
			launch(t, config(3, five))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if l, err := fifth.Acquire(ctx, "r"); err == nil {
				t.Fatalf("two holders: %t and %t", held.Valid(), l.Valid())
			} else if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not take part while process") {
				t.Error(err)
			}
			if !held.Valid() {
				t.Error("the lease is lost")
			}
			for _, n := range old {
				_ = n.Close(t.Context())
			}
			if _, err := fifth.Acquire(t.Context(), "r"); err != nil {
				t.Error(err)
			}
		})
	}
}

// freeMembers returns members on free ports of the loopback.
func freeMembers(t *testing.T, n int) (members []Member) {
	t.Helper()
	for i := range n {
		for tries := 0; ; tries++ {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil || tries == 100 {
				t.Fatal(err)
			}
			defer l.Close() //nolint:errcheck,gocritic // unused; all ports are held until there are enough
			p, err := net.ListenPacket("udp", l.Addr().String())
			if err != nil {
				continue
			}
			defer p.Close() //nolint:errcheck,gocritic // as before
			members = append(members, Member{ID: ID(i + 1), Addr: l.Addr().String()})
			break
		}
	}
	return members
}

func launch(t *testing.T, c Config) *Node {
	t.Helper()
	n, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.Close(ended) // without other members
	})
	return n
}

// The fingerprint contains exactly the settings that must be the same on all members.
func TestFingerprint(t *testing.T) {
	base := func() Config {
		return Config{
			Self: 1, Members: []Member{{ID: 1, Addr: "a:1"}, {ID: 2, Addr: "b:1"}},
			Lease: time.Second, Epsilon: time.Millisecond, Drift: 1.2, Label: "l",
		}
	}
	alike := base()
	alike.Self, alike.Members = 2, []Member{{ID: 2, Addr: "c:1"}, {ID: 1, Addr: "d:1"}}
	alike.Listen, alike.MaxResources, alike.Key = "e:1", 7, secret.New("key")
	plain := base()
	if alike.fingerprint() != plain.fingerprint() {
		t.Error("the fingerprint contains a setting that may differ")
	}
	for name, change := range map[string]func(*Config){
		"a member":  func(c *Config) { c.Members[1].ID = 3 },
		"fewer":     func(c *Config) { c.Members = c.Members[:1] },
		"lease":     func(c *Config) { c.Lease++ },
		"epsilon":   func(c *Config) { c.Epsilon++ },
		"drift":     func(c *Config) { c.Drift = 1.3 },
		"label":     func(c *Config) { c.Label = "m" },
		"no labels": func(c *Config) { c.Label = "" },
	} {
		other := base()
		change(&other)
		if other.fingerprint() == plain.fingerprint() {
			t.Errorf("%s: the same fingerprint", name)
		}
	}
}
