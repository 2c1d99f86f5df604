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

// A made-up term is so many milliseconds ahead.
const (
	anHourAhead = 3_600_000
	aDayAhead   = 24 * anHourAhead
)

// conn is a connection of a stranger to a manager.
func (c *cluster) conn(name string) *grpc.ClientConn {
	c.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr(name), append(wire.DialOptions(), c.dialOptions()...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// claim has a stranger say to all managers, every second for some time, that it has heard of a term; as an owner
// or as a lookup.
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

// randomness is enough for a session.
type randomness struct{}

func (randomness) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i + 1)
	}
	return len(p), nil
}

// term is the highest that a manager knows of.
func (c *cluster) term() (term uint64) {
	for name := range c.managers {
		term = max(term, c.status(name).GetTerm())
	}
	return term
}

// settled is a group without a disk whose one owner has all keys.
func settled(t *testing.T, test func(t *testing.T, c *cluster, leader string, a *owner.Owner)) {
	withoutDisk(t, func(t *testing.T, c *cluster, leader string) {
		c.create(leader, pool())
		a := c.join("a")
		eventually(t, time.Minute, "a has all keys", func() bool { return complete(a) })
		test(t, c, leader, a)
	})
}

// What lookups have heard of moves nobody, however young the group is: they may only read.
func TestLookupAheadMovesNothing(t *testing.T) {
	settled(t, func(t *testing.T, c *cluster, leader string, a *owner.Owner) {
		term, held := c.term(), a.Leases()
		c.claim(term+aDayAhead, false, 60)
		if now := c.leads(time.Second); now != leader || c.term() != term || !complete(a) || a.Leases()[0] != held[0] {
			t.Errorf("the leader is %s and was %s, the term %d and was %d; a has %v and had %v", now, leader, c.term(), term, a.Leases(), held)
		}
	})
}

// An owner that has heard of a term of which managers that have been there for long know nothing is mistaken: that
// is noted, and nothing else happens.
func TestOwnerAheadIsDisbelieved(t *testing.T) {
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

// In a young group such an owner may be right. If it is not, it costs an election or a few, and ever fewer.
func TestOwnerAheadOfAYoungGroup(t *testing.T) {
	settled(t, func(t *testing.T, c *cluster, leader string, a *owner.Owner) {
		terms, owned, last := 0, 0, c.term()
		const samples = 600
		go func() {
			for range samples / 10 {
				c.claim(c.term()+anHourAhead, true, 10) // always ahead of what there is
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

// All managers are restarted at a time, and their wall clocks are behind what they were, while owners live: they have
// heard of a term an hour ahead. The group leads above that at once, and does not wait for an hour.
func TestClocksSetBackAndAllRestarted(t *testing.T) {
	settled(t, func(t *testing.T, c *cluster, leader string, a *owner.Owner) {
		// There is one wall clock in a bubble. So first the group is brought to be an hour ahead of it.
		before := c.term()
		c.claim(before+anHourAhead, true, 3)
		c.leads(30 * time.Second)
		ahead := c.term()
		if ahead <= before+anHourAhead {
			t.Fatalf("the term was %d and is %d, although the group is young", before, ahead)
		}
		eventually(t, 30*time.Second, "a has heard of that", func() bool { return complete(a) && members(t, c, c.leads(time.Second)) == 1 })
		for _, name := range c.peers.members {
			c.crash(name)
		}
		for _, name := range c.peers.members {
			c.peers.mend(name)
			c.start(name)
		}
		leader = c.leads(2 * time.Minute) // it waits for leases that are forgotten
		if now := c.term(); now >= ahead {
			t.Fatalf("the term is %d, and was %d: nothing was forgotten", now, ahead)
		}
		c.create(leader, pool())
		begun := time.Now()
		eventually(t, 30*time.Second, "a has all keys", func() bool { return complete(a) })
		if now := c.term(); now <= ahead || time.Since(begun) > 20*time.Second {
			t.Errorf("after %v the term is %d; owners have heard of %d", time.Since(begun), now, ahead)
		}
		c.leads(10 * time.Second)
		time.Sleep(time.Minute)
		if !complete(a) {
			t.Error("a has lost its keys")
		}
	})
}
