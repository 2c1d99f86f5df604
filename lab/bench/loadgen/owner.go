package loadgen

import (
	cryptorand "crypto/rand"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// OwnerConfig is that of an [Owner].
type OwnerConfig struct {
	Clock     *clock.Clock
	Namespace leasehold.Namespace
	Name      leasehold.OwnerID
	Addr      string
	OnBeat    bool // renew on the beat, as the library does
	Send      func(*leaseholdv1.HoldRequest)
	Act       func(machine.Action) // sees what the machine decides; may be nil
}

// An Owner is one session: the state machine of the owner library and a timer. It
// has no state to move, and serves no calls.
type Owner struct {
	OwnerConfig
	Granted chan struct{} // closed when it has its first lease
	Left    chan struct{} // closed when the leader knows that it has left

	mu      sync.Mutex
	machine *machine.Machine
	timer   *time.Timer
	held    []leasehold.Lease
	served  bool // it has had a lease
	ended   bool
}

// NewOwner returns a session that has not begun.
func NewOwner(c OwnerConfig) (*Owner, error) {
	session, err := leasehold.NewSession(cryptorand.Reader)
	if err != nil {
		return nil, err
	}
	config := machine.Config{
		Namespace: c.Namespace,
		Holder:    &table.Holder{Owner: c.Name, Addr: c.Addr, Session: session, Weight: 1},
		Rand:      rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	if c.OnBeat {
		config.Beats = c.Clock.Beats()
	}
	m, err := machine.New(c.Clock.Now(), config)
	return &Owner{OwnerConfig: c, machine: m, Granted: make(chan struct{}), Left: make(chan struct{})}, err
}

// Begin sends the first request.
func (o *Owner) Begin() {
	o.mu.Lock()
	o.timer = time.AfterFunc(time.Hour, o.wake)
	o.mu.Unlock()
	o.wake()
}

// End stops the session without a goodbye.
func (o *Owner) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
}

// Leave gives everything back. Left is closed when the leader knows.
func (o *Owner) Leave() { o.step(machine.Leave{}) }

// Reconnected says that there is another connection.
func (o *Owner) Reconnected() {
	o.step(machine.HungUp{})
	o.wake()
}

func (o *Owner) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.act(o.machine.Advance(o.Clock.Now()))
	}
}

func (o *Owner) step(e machine.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.act(o.machine.Step(o.Clock.Now(), e))
	}
}

// act does what the machine has decided. The lock is held.
func (o *Owner) act(actions []machine.Action, wake mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Send:
			o.Send(wire.FromLeaseRequest(a.Request))
		case machine.Publish:
			o.held = a.View.Leases
		case machine.GrantedLeases:
			if !o.served {
				o.served = true
				close(o.Granted)
			}
		case machine.Left:
			close(o.Left)
		}
		if o.Act != nil {
			o.Act(a)
		}
	}
	if wake != mono.Never {
		o.timer.Reset(max(0, wake.Sub(o.Clock.Now())))
	}
}

// Receive takes a grant of the manager.
func (o *Owner) Receive(grant *leaseholdv1.Grant) error {
	reply, err := wire.ToLeaseReply(grant, protocol.DefaultLimits)
	if err != nil {
		return err
	}
	o.step(machine.Reply{LeaseReply: reply})
	return nil
}

// Leases returns what it holds.
func (o *Owner) Leases() []leasehold.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil
	}
	return o.held
}
