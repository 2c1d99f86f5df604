package main

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	machine "github.com/leasehold-dev/leasehold/internal/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A lean owner is what the protocol takes, and no more, as the clients of lock services
// here are: the machine that decides for the library's owners, a stream of a connection
// that others use too, and a timer. It renews its lease; what keeps a server's checks
// fast, and calls it back, it has not.
type lean struct {
	clock         *clock.Clock
	stream        grpc.BidiStreamingClient[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	hangUp        context.CancelFunc
	granted, left chan struct{} // closed when it has its lease, and when the leader knows that it has none
	heard         chan error    // why its stream has ended

	mu      sync.Mutex
	machine *machine.Machine
	timer   *time.Timer
	has     bool
}

// joinLean lets an owner say hello.
func joinLean(c *clock.Clock, conn *grpc.ClientConn, namespace, name string) (*lean, error) {
	session, err := leasehold.NewSession(cryptorand.Reader)
	if err != nil {
		return nil, err
	}
	m, err := machine.New(c.Now(), machine.Config{
		Namespace: leasehold.Namespace(namespace),
		Holder:    &table.Holder{Owner: leasehold.OwnerID(name), Addr: "127.0.0.1:1", Session: session, Weight: 1},
		Rand:      rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	o := &lean{
		clock: c, stream: stream, hangUp: cancel, machine: m,
		granted: make(chan struct{}), left: make(chan struct{}), heard: make(chan error, 1),
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = time.AfterFunc(time.Hour, o.wake)
	go func() { o.heard <- o.listen() }()
	o.act(o.machine.Advance(c.Now()))
	return o, nil
}

// await waits until the owner has its lease.
func (o *lean) await(ctx context.Context) error { return o.until(ctx, o.granted) }

// leave gives everything back, waits until the leader knows, and hangs up.
func (o *lean) leave(ctx context.Context) error {
	o.step(machine.Leave{})
	err := o.until(ctx, o.left)
	o.mu.Lock()
	o.timer.Stop()
	o.mu.Unlock()
	o.hangUp()
	return err
}

func (o *lean) until(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case err := <-o.heard:
		return fmt.Errorf("the manager has hung up: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (o *lean) listen() error {
	for {
		r, err := o.stream.Recv()
		if err != nil {
			return err
		}
		if r.GetGrant() == nil {
			continue // the leader does not serve it yet: the machine asks again
		}
		reply, err := wire.ToLeaseReply(r.GetGrant(), protocol.DefaultLimits)
		if err != nil {
			return err
		}
		o.step(machine.Reply{LeaseReply: reply})
	}
}

func (o *lean) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.act(o.machine.Advance(o.clock.Now()))
}

func (o *lean) step(e machine.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.act(o.machine.Step(o.clock.Now(), e))
}

// act does what the machine has decided. The lock is held.
func (o *lean) act(actions []machine.Action, wake mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Send:
			_ = o.stream.Send(wire.FromLeaseRequest(a.Request)) // whoever listens hears why it failed
		case machine.GrantedLeases:
			if !o.has {
				o.has = true
				close(o.granted)
			}
		case machine.Left:
			close(o.left)
		}
	}
	if wake != mono.Never {
		o.timer.Reset(max(0, wake.Sub(o.clock.Now())))
	}
}
