package loadgen

import (
	"cmp"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An ownerSession is the state machine of the owner library and a timer. It transfers no state
// and serves no calls.
type ownerSession struct {
	clock    *clock.Clock
	counters *counters
	send     func(proto.Message)
	left     chan struct{} // closed when the leader has acknowledged the Leave

	mu      sync.Mutex
	machine *machine.Machine
	timer   *time.Timer
	held    []leasehold.Lease
	ended   bool
}

func (c *Clients) newOwner(number int) *client {
	leader := cmp.Or(c.Leader, c.Managers[0])
	one := &client{all: c, managers: []string{leader}, number: number, method: leaseholdv1.OwnerService_Hold_FullMethodName}
	one.enter = func() (session, error) { return c.newOwnerSession(number, one.send) }
	return one
}

func (c *Clients) newOwnerSession(number int, send func(proto.Message)) (*ownerSession, error) {
	id, err := leasehold.NewSession(cryptorand.Reader)
	if err != nil {
		return nil, err
	}
	m, err := machine.New(c.clock.Now(), machine.Config{
		Namespace: leasehold.Namespace(c.Namespace),
		Holder:    &table.Holder{Owner: ownerName("owner", number), Addr: ownerAddr(number), Session: id, Weight: 1},
		Rand:      rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), Beats: c.clock.Beats(),
	})
	return &ownerSession{clock: c.clock, counters: &c.counters, send: send, machine: m, left: make(chan struct{})}, err
}

func ownerName(prefix string, number int) leasehold.OwnerID {
	return leasehold.OwnerID(fmt.Sprintf("%s-%05d", prefix, number))
}

func ownerAddr(number int) string {
	return fmt.Sprintf("10.%d.%d.%d:80", number>>16, number>>8&255, number&255)
}

// Begin sends the first request.
func (o *ownerSession) Begin() {
	o.mu.Lock()
	o.timer = time.AfterFunc(time.Hour, o.wake)
	o.mu.Unlock()
	o.wake()
}

// End stops the session without a Leave.
func (o *ownerSession) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
}

// leave releases all leases.
func (o *ownerSession) leave() <-chan struct{} {
	o.step(machine.Leave{})
	return o.left
}

// Resume continues with another connection.
func (o *ownerSession) Resume() {
	o.step(machine.Disconnected{})
	o.wake()
}

func (o *ownerSession) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.act(o.machine.Advance(o.clock.Now()))
	}
}

func (o *ownerSession) step(e machine.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.act(o.machine.Step(o.clock.Now(), e))
	}
}

// act executes the machine's actions. The caller holds the lock.
func (o *ownerSession) act(actions []machine.Action, wake mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Send:
			o.send(wire.FromLeaseRequest(a.Request))
		case machine.Publish:
			o.held = a.View.Leases
		case machine.RevokedLeases:
			if a.Cause == leasehold.CauseExpired {
				o.counters.Expired.Add(1)
			}
		case machine.Left:
			close(o.left)
		}
	}
	if wake != mono.Never {
		o.timer.Reset(max(0, wake.Sub(o.clock.Now())))
	}
}

func (o *ownerSession) receive(message []byte) {
	var response leaseholdv1.HoldResponse
	err := proto.Unmarshal(message, &response)
	if err != nil || response.GetGrant() == nil {
		o.counters.Strange.Add(1)
		return
	}
	reply, err := wire.ToLeaseReply(response.GetGrant(), protocol.DefaultLimits)
	if err != nil {
		o.counters.Strange.Add(1)
		return
	}
	o.step(machine.Reply{LeaseReply: reply})
}

// leases returns the held leases.
func (o *ownerSession) leases() []leasehold.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil
	}
	return o.held
}
