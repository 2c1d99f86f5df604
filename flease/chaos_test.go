package flease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// An oracle records all leases that were acquired.
type oracle struct {
	t      *testing.T
	mu     sync.Mutex
	leases map[string][]*Lease
	given  int
}

// give records a lease. If it is still valid after the rest of its batch was acquired, all earlier
// leases of the resource must have ended, with lower fences.
func (o *oracle) give(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !l.Valid() {
		return
	}
	o.given++
	for _, other := range o.leases[l.Resource()] {
		if other.Valid() {
			o.t.Errorf("%s: two holders: member %d with fence %d, and member %d with %d", l.Resource(), other.node.Self(), other.Fence(), l.node.Self(), l.Fence())
		}
		if other.Fence() >= l.Fence() {
			o.t.Errorf("%s: fence %d after %d", l.Resource(), l.Fence(), other.Fence())
		}
	}
	o.leases[l.Resource()] = append(o.leases[l.Resource()], l)
}

// Under random calls, network faults and clock faults, a resource has one holder at a time, and in
// the end all resources are free again.
func TestChaos(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			within(t, func(t *testing.T) { chaos(t, seed) })
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	const callers, calls = 3, 60
	s := newSystem(t, 3, nil)
	o := &oracle{t: t, leases: map[string][]*Lease{}}
	var all sync.WaitGroup
	for id := ID(1); id <= 3; id++ {
		for caller := range uint64(callers) {
			node, random := s.nodes[id], rand.New(rand.NewPCG(seed, uint64(id)<<8|caller))
			all.Go(func() {
				for range calls {
					call(t, o, node, random)
				}
			})
		}
	}
	stop := make(chan struct{})
	var faults sync.WaitGroup
	faults.Go(func() { disturb(s, rand.New(rand.NewPCG(seed, 99)), stop) })
	all.Wait()
	close(stop)
	faults.Wait()
	for _, resource := range []string{"a", "b", "c"} {
		l := s.acquire(1+ID(seed%3), resource)
		o.give(l)
	}
	if o.given < calls {
		t.Errorf("only %d leases were given out", o.given)
	}
	time.Sleep(time.Minute) // background releases have ended
	for _, n := range s.nodes {
		if got := n.Status(); got.Waiting != 0 || len(n.requests.entries) != got.Held {
			t.Errorf("member %d holds %d and waits for %d, and has %d entries", n.Self(), got.Held, got.Waiting, len(n.requests.entries))
		}
	}
}

// call executes one random call.
func call(t *testing.T, o *oracle, n *Node, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(20_000))*time.Millisecond)
	defer cancel()
	names := []string{"a", "b", "c"}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var got []*Lease
	switch random.IntN(4) {
	case 0:
		if l, err := n.Acquire(ctx, names[0]); err == nil {
			got = []*Lease{l}
		}
	case 1:
		if l, err := n.TryAcquire(ctx, names[0]); err == nil {
			got = []*Lease{l}
		}
	case 2:
		got, _ = n.AcquireAll(ctx, names[:2])
	case 3:
		for _, r := range n.TryAcquireAll(ctx, names) {
			if r.Err == nil {
				got = append(got, r.Lease)
			}
		}
	}
	for _, l := range got {
		o.give(l)
	}
	time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
	patience := time.Duration(random.IntN(2000)) * time.Millisecond
	if random.IntN(2) == 0 {
		patience = 1000 * time.Hour // until it ends
	}
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := n.ReleaseAll(ctx, got); patience > time.Hour && errors.Is(err, context.DeadlineExceeded) {
		t.Error("a release did not end")
	}
	for _, l := range got {
		if l.Valid() || !isOver(l) {
			t.Errorf("%s is valid after its release", l.Resource())
		}
	}
}

// disturb cuts connections, sets clocks and suspends computers, and repairs all of it at the end.
func disturb(s *system, random *rand.Rand, stop <-chan struct{}) {
	mend := func() {}
	defer func() { mend() }()
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.IntN(10_000)) * time.Millisecond):
		}
		mend()
		from, to := ID(1+random.IntN(3)), ID(1+random.IntN(3))
		mend = func() { s.network.Mend(from, to) }
		switch random.IntN(4) {
		case 0, 1:
			s.network.Cut(from, to)
		case 2:
			s.clocks[from].slept.Add(1)
		case 3:
			s.clocks[from].ahead.Store(int64(random.IntN(3)-1) * int64(time.Minute))
			mend = func() { s.clocks[from].ahead.Store(0) }
		}
	}
}
