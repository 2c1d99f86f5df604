package flease

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/fleasenet"
	"github.com/leasehold-dev/leasehold/secret"
)

// A wiretap records authenticated packets that arrive at members, and replays them: an attacker whose
// packets pass authentication at a member without state.
type wiretap struct {
	network *Memory
	mu      sync.Mutex
	tape    map[machine.Process][]heardOnce // by receiver
	waits   map[machine.Process][]heardOnce // to replay before the next packet
}

type heardOnce struct {
	envelope machine.Envelope
	messages []machine.Message
}

func (w *wiretap) open(c fleasenet.Config) (fleasenet.Net, error) {
	receive := c.Receive
	c.Receive = func(e *machine.Envelope, msgs []machine.Message, from *fleasenet.Source) {
		once := heardOnce{*e, slices.Clone(msgs)}
		for i := range once.messages { // the name is in the packet's buffer
			once.messages[i].Name = strings.Clone(once.messages[i].Name)
		}
		w.mu.Lock()
		w.tape[c.Self] = append(w.tape[c.Self], once)
		old := w.waits[c.Self]
		delete(w.waits, c.Self)
		w.mu.Unlock()
		for _, o := range old {
			receive(&o.envelope, slices.Clone(o.messages), from)
		}
		receive(e, msgs, from)
	}
	return w.network.open(c)
}

// play replays to every member, in order, all packets that it or an earlier process with its ID
// received.
func (w *wiretap) play(t *testing.T, members ...ID) {
	t.Helper()
	w.mu.Lock()
	for _, id := range members {
		to := machine.Process(id)
		w.waits[to] = slices.Clone(w.tape[to])
		if len(w.waits[to]) < 10 {
			t.Errorf("for member %d only %d packets were recorded", to, len(w.waits[to]))
		}
	}
	w.mu.Unlock()
	time.Sleep(lease / 2) // they send packets every third of a lease
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waits) > 0 {
		t.Errorf("members %v have received nothing", slices.Collect(maps.Keys(w.waits)))
	}
}

// TestReplayedPackets: replayed packets have no effect, on restarted members and on others. A holder
// keeps its lease, a former holder does not get it back, and no member gives way to a process that
// has ended.
func TestReplayedPackets(t *testing.T) {
	within(t, func(t *testing.T) {
		var tap *wiretap
		s := newSystem(t, 3, func(c *Config) {
			tap = &wiretap{network: c.Transport.(*Memory), tape: make(map[machine.Process][]heardOnce), waits: make(map[machine.Process][]heardOnce)}
			c.Transport, c.Key = tap, secret.New("0123456789abcdef")
		})
		first := s.acquire(1, "r")
		time.Sleep(2 * lease) // it renews
		for _, id := range []ID{2, 3} {
			s.kill(id)
			if err := s.start(id).Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			tap.play(t, 1, 2, 3)
			if !first.Valid() {
				t.Fatalf("replay to the restarted member %d: the lease is lost: %v", id, first.Err())
			}
		}
		s.kill(1)
		second := s.acquire(2, "r")
		for range 5 {
			tap.play(t, 2, 3) // includes packets of member 1 as the holder
			if !second.Valid() {
				t.Fatalf("the lease of the second holder is lost: %v", second.Err())
			}
			if l, err := s.nodes[3].TryAcquire(t.Context(), "r"); err == nil {
				t.Fatalf("two holders: %v", l)
			}
		}
		if err := s.start(1).Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		tap.play(t, 1, 2, 3)
		if l, err := s.nodes[1].TryAcquire(t.Context(), "r"); err == nil || !second.Valid() {
			t.Errorf("the first holder is restarted and has %v; the second holds the lease: %t", l, second.Valid())
		}
		for id, n := range s.nodes {
			if n.Err() != nil {
				t.Errorf("member %d has given way: %v", id, n.Err())
			}
		}
		s.acquire(3, "another") // so that they continue to send packets
		s.acquire(1, "a third")
		if err := second.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		tap.play(t, 1, 2, 3)
		s.acquire(3, "r") // it is free
	})
}
