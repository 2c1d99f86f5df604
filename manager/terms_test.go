package manager_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// anHourAhead is the distance of a made-up term, in milliseconds.
const (
	anHourAhead = 3_600_000
	aDayAhead   = 24 * anHourAhead
)

// conn returns a connection of a test client to a manager.
func (c *cluster) conn(name string) *grpc.ClientConn {
	c.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr(name), append(wire.DialOptions(), c.dialOptions()...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// claim sends requests with a term to all managers, every second, as an owner or a lookup.
func (c *cluster) claim(term uint64, asOwner bool, times int) {
	c.t.Helper()
	session, err := leasehold.NewSession(randomness{})
	if err != nil {
		c.t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, name := range c.peers.members {
		all.Go(func() {
			conn := c.conn(name)
			defer func() { _ = conn.Close() }()
			for i := range times {
				ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
				if asOwner {
					if s, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx); err == nil {
						_ = s.Send(&leaseholdv1.HoldRequest{
							Version: wire.Version, Namespace: "pool", Seq: uint64(i + 1), Term: term,
							Holder: &leaseholdv1.Holder{Owner: "eve", Session: session[:], Addr: "eve:80", Weight: 1},
						})
					}
				} else if s, err := leaseholdv1.NewLookupServiceClient(conn).Follow(ctx); err == nil {
					_ = s.Send(&leaseholdv1.FollowRequest{Version: wire.Version, Namespace: "pool", Seq: uint64(i + 1), Term: term})
				}
				<-ctx.Done()
				cancel()
			}
		})
	}
	all.Wait()
}

// randomness is a source for session IDs.
type randomness struct{}

func (randomness) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i + 1)
	}
	return len(p), nil
}

// term returns the highest term of all managers.
func (c *cluster) term() (term uint64) {
	for name := range c.managers {
		term = max(term, c.status(name).GetTerm())
	}
	return term
}

// settled runs a test with a diskless group whose only owner holds all keys.
func settled(t *testing.T, test func(t *testing.T, c *cluster, leader string, a *owner.Owner)) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.create(leader, pool())
		a := c.join("a")
		eventually(t, time.Minute, "a has all keys", func() bool { return complete(a) })
		test(t, c, leader, a)
	})
}

// Terms in requests of lookups, which may only read, have no effect, even on a new group.
func TestTermOfLookupHasNoEffect(t *testing.T) {
	settled(t, func(t *testing.T, c *cluster, leader string, a *owner.Owner) {
		term, held := c.term(), a.Leases()
		c.claim(term+aDayAhead, false, 60)
		if now := c.leads(time.Second); now != leader || c.term() != term || !complete(a) || a.Leases()[0] != held[0] {
			t.Errorf("the leader is %s and was %s, the term %d and was %d; a has %v and had %v", now, leader, c.term(), term, a.Leases(), held)
		}
	})
}

// A term of an owner that no manager of an old group has seen is logged and ignored.
func TestTermOfOwnerIsIgnoredByOldGroup(t *testing.T) {
	settled(t, func(t *testing.T, c *cluster, leader string, a *owner.Owner) {
		time.Sleep(20 * time.Minute)
		term, held := c.term(), a.Leases()
		for _, ahead := range []uint64{1, anHourAhead, aDayAhead} {
			c.claim(term+ahead, true, 20)
		}
		if now := c.leads(time.Second); now != leader || c.term() != term || !complete(a) || a.Leases()[0] != held[0] {
			t.Errorf("the leader is %s and was %s, the term %d and was %d; a has %v and had %v", now, leader, c.term(), term, a.Leases(), held)
		}
	})
}

// In a new group such an owner may be right. If it is not, it causes a few elections, at a decreasing rate.
func TestTermOfOwnerInNewGroup(t *testing.T) {
	settled(t, func(t *testing.T, c *cluster, leader string, a *owner.Owner) {
		terms, owned, last := 0, 0, c.term()
		const samples = 600
		go func() {
			for range samples / 10 {
				c.claim(c.term()+anHourAhead, true, 10) // always ahead of the group
			}
		}()
		for range samples {
			time.Sleep(time.Second)
			if now := c.term(); now != last {
				terms, last = terms+1, now
			}
			if complete(a) {
				owned++
			}
		}
		if terms == 0 || terms > 20 || owned < samples*95/100 {
			t.Errorf("there were %d terms more, and all keys were owned in %d of %d samples", terms, owned, samples)
		}
	})
}

// All managers are restarted at the same time, with wall clocks set back by an hour, while owners continue: they have
// seen a term an hour ahead. The next term is above that at once, without waiting for the clocks.
func TestAllRestartedWithClocksSetBack(t *testing.T) {
	settled(t, func(t *testing.T, c *cluster, leader string, a *owner.Owner) {
		// A bubble has one wall clock. So first a claim moves the group's term an hour ahead of it.
		before := c.term()
		c.claim(before+anHourAhead, true, 3)
		c.leads(30 * time.Second)
		ahead := c.term()
		if ahead <= before+anHourAhead {
			t.Fatalf("the term of a new group is %d after %d, want a jump", ahead, before)
		}
		eventually(t, 30*time.Second, "a has seen the term", func() bool { return complete(a) && members(t, c, c.leads(time.Second)) == 1 })
		for _, name := range c.peers.members {
			c.crash(name)
		}
		for _, name := range c.peers.members {
			c.peers.mend(name)
			c.start(name)
		}
		leader = c.leads(2 * time.Minute) // it waits until lost leases have expired
		if now := c.term(); now >= ahead {
			t.Fatalf("the term is %d after %d: the managers have not lost it", now, ahead)
		}
		c.create(leader, pool())
		begun := time.Now()
		eventually(t, 30*time.Second, "a has all keys", func() bool { return complete(a) })
		if now := c.term(); now <= ahead || time.Since(begun) > 20*time.Second {
			t.Errorf("after %v the term is %d; owners have seen %d", time.Since(begun), now, ahead)
		}
		c.leads(10 * time.Second)
		time.Sleep(time.Minute)
		if !complete(a) {
			t.Error("a has lost its keys")
		}
	})
}
