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

// A wiretap records what arrives at members, after it was found authentic: so much for somebody
// who can say again whatever was ever said, to a member that remembers nothing.
type wiretap struct {
	network *Memory
	mu      sync.Mutex
	tape    map[machine.Process][]heardOnce // by who heard it
	waits   map[machine.Process][]heardOnce // to be said before the next packet
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

// play says to every member, in the order in which it was said, whatever was said to it or to an
// earlier process with its id.
func (w *wiretap) play(t *testing.T, members ...ID) {
	t.Helper()
	w.mu.Lock()
	for _, id := range members {
		to := machine.Process(id)
		w.waits[to] = slices.Clone(w.tape[to])
		if len(w.waits[to]) < 10 {
			t.Errorf("of what member %d heard, %d packets were recorded", to, len(w.waits[to]))
		}
	}
	w.mu.Unlock()
	time.Sleep(lease / 2) // they speak to each other every third
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waits) > 0 {
		t.Errorf("members %v have heard nothing", slices.Collect(maps.Keys(w.waits)))
	}
}

// TestReplayedPackets: whoever has recorded everything changes nothing by saying it again, to members
// that were restarted meanwhile and to others: who has a lease keeps it, who has lost it does not
// get it back, and nobody gives way to a process that is long gone.
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
				t.Fatalf("after member %d was restarted, and heard what it had heard before, the lease is lost: %v", id, first.Err())
			}
		}
		s.kill(1)
		second := s.acquire(2, "r")
		for range 5 {
			tap.play(t, 2, 3) // what member 1 said when it had the lease, too
			if !second.Valid() {
				t.Fatalf("the lease of the second holder is lost: %v", second.Err())
			}
			if l, err := s.nodes[3].TryAcquire(t.Context(), "r"); err == nil {
				t.Fatalf("two have the lease: %v", l)
			}
		}
		if err := s.start(1).Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		tap.play(t, 1, 2, 3)
		if l, err := s.nodes[1].TryAcquire(t.Context(), "r"); err == nil || !second.Valid() {
			t.Errorf("the first holder is back, and has %v; the second has it: %t", l, second.Valid())
		}
		for id, n := range s.nodes {
			if n.Err() != nil {
				t.Errorf("member %d has given way: %v", id, n.Err())
			}
		}
		s.acquire(3, "another") // so that they go on speaking
		s.acquire(1, "a third")
		if err := second.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		tap.play(t, 1, 2, 3)
		s.acquire(3, "r") // nobody has brought it back
	})
}
