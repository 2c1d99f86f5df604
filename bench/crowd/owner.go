package crowd

import (
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	machine "github.com/leasehold-dev/leasehold/internal/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An owner is one session: the library's machine, and a timer.
type owner struct {
	tally  *tally
	clock  *clock.Clock
	say    func(message []byte)
	moveOn func(leader string) // to another manager; nil if there is none

	mu      sync.Mutex
	machine *machine.Machine
	timer   *time.Timer
	held    []leasehold.Lease
	begun   time.Time
	served  bool // it has had a lease
	left    chan struct{}
	ended   bool
}

// newOwner returns a session of the owner with a number.
func newOwner(c *clock.Clock, t *tally, namespace string, number int, say func([]byte)) (*owner, error) {
	var session leasehold.Session
	_, _ = cryptorand.Read(session[:]) // it never fails
	m, err := machine.New(c.Now(), machine.Config{
		Namespace: leasehold.Namespace(namespace),
		Holder: &table.Holder{
			Owner: leasehold.OwnerID(fmt.Sprintf("owner-%05d", number)), Addr: fmt.Sprintf("10.%d.%d.%d:80", number>>16, number>>8&255, number&255),
			Session: session, Weight: 1,
		},
		Rand:  rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		Beats: c.Beats(),
	})
	return &owner{tally: t, clock: c, say: say, machine: m, left: make(chan struct{})}, err
}

// begin speaks for the first time.
func (o *owner) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun = time.Now()
	o.timer = time.AfterFunc(time.Hour, o.wake)
	o.advance()
}

// end says no more.
func (o *owner) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
}

// leave gives everything back. The channel is closed when the leader knows.
func (o *owner) leave() <-chan struct{} {
	o.step(machine.Leave{})
	return o.left
}

func (o *owner) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.advance()
	}
}

// advance lets time pass. The lock is held.
func (o *owner) advance() {
	actions, wake := o.machine.Advance(o.clock.Now())
	o.act(actions, wake)
}

func (o *owner) step(e machine.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return
	}
	actions, wake := o.machine.Step(o.clock.Now(), e)
	o.act(actions, wake)
}

// act does what the machine has decided. It has no state to move, and nobody
// relies on it.
func (o *owner) act(actions []machine.Action, wake mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Send:
			b, _ := proto.Marshal(wire.FromLeaseRequest(a.Request)) // it has nothing that could fail
			o.say(b)
		case machine.Publish:
			o.held = a.View.Leases
		case machine.GrantedLeases:
			if !o.served {
				o.served = true
				o.tally.firstLease(time.Since(o.begun))
			}
		case machine.RevokedLeases:
			if a.Cause == leasehold.CauseExpired {
				o.tally.expired.Add(1)
			}
		case machine.Note:
			if a.What == machine.NoteLeaderSilent {
				o.tally.repeats.Add(1)
			}
		case machine.Left:
			close(o.left)
		}
	}
	if wake != mono.Never {
		o.timer.Reset(max(0, wake.Sub(o.clock.Now())))
	}
}

// listen returns what takes what the manager says, on a new connection.
func (o *owner) listen() listener { return &assembler{hear: o.hear} }

// hear takes what the manager says.
func (o *owner) hear(message []byte) {
	var response leaseholdv1.HoldResponse
	err := proto.Unmarshal(message, &response)
	if n := response.GetNotLeader(); n != nil && o.moveOn != nil {
		o.moveOn(n.GetLeader())
		return
	}
	if err != nil || response.GetGrant() == nil {
		o.tally.strange.Add(1)
		return
	}
	reply, err := wire.ToLeaseReply(response.GetGrant(), protocol.DefaultLimits)
	if err != nil {
		o.tally.strange.Add(1)
		return
	}
	o.step(machine.Reply{LeaseReply: reply})
}

// holds returns what it may serve now.
func (o *owner) holds() []leasehold.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil
	}
	return o.held
}
