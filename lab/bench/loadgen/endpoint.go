package loadgen

import (
	"context"
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

type session interface {
	Begin()                 // on the first connection
	Resume()                // on later connections
	Leave() <-chan struct{} // closed when the leader has acknowledged it; or nil
	End()
	listener() Listener
}

// An endpoint is a connection and the sessions that share it. It reconnects when the
// connection breaks, to the next manager if there are several.
type endpoint struct {
	clients *LeanClients
	number  int
	method  string
	enter   func(stream int) (session, error) // makes a new session

	mu       sync.Mutex
	conn     *Conn // nil while there is none
	sessions []session
	stop     context.CancelFunc
	done     chan struct{}
}

func (e *endpoint) open(streams int) error {
	sessions := make([]session, streams)
	for i := range sessions {
		var err error
		if sessions[i], err = e.enter(i); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	e.mu.Lock()
	e.sessions, e.stop, e.done = sessions, stop, make(chan struct{})
	e.mu.Unlock()
	go e.serve(ctx, sessions)
	return nil
}

// serve connects and reconnects until it is stopped.
func (e *endpoint) serve(ctx context.Context, sessions []session) {
	defer close(e.done)
	begun, failures := false, 0
	for at := e.number; ctx.Err() == nil; at++ {
		failures++
		c, err := e.connect(at, sessions)
		if err == nil {
			failures = 0
			e.set(c)
			stopped := context.AfterFunc(ctx, c.Close)
			for _, s := range sessions {
				if begun {
					s.Resume()
				} else {
					s.Begin()
				}
			}
			begun = true
			_ = c.Read()
			e.set(nil)
			stopped()
			c.Close()
		}
		if ctx.Err() != nil {
			return
		}
		e.clients.counters.Broken.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(e.backoff(failures)):
		}
	}
}

func (e *endpoint) connect(at int, sessions []session) (*Conn, error) {
	managers := e.clients.Managers
	c, err := Dial(managers[at%len(managers)], e.number, e.method, &e.clients.traffic)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		if _, err := c.Open(s.listener()); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// backoff returns the pause before the next connection, after a number of consecutive
// failures. Lookups use the library's backoff.
func (e *endpoint) backoff(failures int) time.Duration {
	if e.method == leaseholdv1.LookupService_Follow_FullMethodName {
		return jitter(min(retry<<min(failures, 6), e.clients.poll))
	}
	return jitter(time.Second)
}

func (e *endpoint) set(c *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conn = c
}

// send sends a message on a stream, if there is a connection. Read reports a broken one.
func (e *endpoint) send(stream int, message []byte) {
	e.mu.Lock()
	c := e.conn
	e.mu.Unlock()
	if c != nil {
		_ = c.Send(stream, message)
	}
}

func (e *endpoint) switchManager(leader string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn != nil && e.conn.net.RemoteAddr().String() != leader {
		e.conn.Close()
	}
}

// goodbyeLimit is the timeout of an owner's Leave.
const goodbyeLimit = 15 * time.Second

// close ends the sessions. Owners leave first, unless they crash.
func (e *endpoint) close(crash bool) {
	for _, s := range e.current() {
		if !crash {
			if left := s.Leave(); left != nil {
				select {
				case <-left:
				case <-time.After(goodbyeLimit):
					e.clients.counters.Unheard.Add(1)
				}
			}
		}
		s.End()
	}
	e.stop()
	<-e.done
}

func (e *endpoint) current() []session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions
}

type ownerSession struct {
	*Owner
	counters      *counters
	switchManager func(leader string) // to another manager; nil if there is only one
}

func (c *LeanClients) ownerEndpoint(number int) *endpoint {
	e := &endpoint{clients: c, number: number, method: leaseholdv1.OwnerService_Hold_FullMethodName}
	e.enter = func(stream int) (session, error) {
		s := &ownerSession{counters: &c.counters}
		if len(c.Managers) > 1 {
			s.switchManager = e.switchManager
		}
		var err error
		s.Owner, err = NewOwner(OwnerConfig{
			Clock: c.clock, Namespace: leasehold.Namespace(c.Namespace), OnBeat: true,
			Name: ownerName(number), Addr: ownerAddr(number), Act: s.count,
			Send: func(request *leaseholdv1.HoldRequest) {
				b, _ := proto.Marshal(request) // cannot fail
				e.send(stream, b)
			},
		})
		return s, err
	}
	return e
}

func ownerName(number int) leasehold.OwnerID {
	return leasehold.OwnerID(fmt.Sprintf("owner-%05d", number))
}

func ownerAddr(number int) string {
	return fmt.Sprintf("10.%d.%d.%d:80", number>>16, number>>8&255, number&255)
}

func (s *ownerSession) listener() Listener { return Whole(s.receive) }

func (s *ownerSession) receive(message []byte) {
	var response leaseholdv1.HoldResponse
	err := proto.Unmarshal(message, &response)
	if n := response.GetNotLeader(); n != nil && s.switchManager != nil {
		s.switchManager(n.GetLeader())
		return
	}
	if err != nil || response.GetGrant() == nil || s.Receive(response.GetGrant()) != nil {
		s.counters.Strange.Add(1)
	}
}

func (s *ownerSession) count(action machine.Action) {
	if a, ok := action.(machine.RevokedLeases); ok && a.Cause == leasehold.CauseExpired {
		s.counters.Expired.Add(1)
	}
}

func (c *LeanClients) lookupEndpoint(number int) *endpoint {
	e := &endpoint{clients: c, number: number, method: leaseholdv1.LookupService_Follow_FullMethodName}
	e.enter = func(stream int) (session, error) {
		l := &lookupSession{
			namespace: c.Namespace, poll: c.poll, lsn: c.lsn, counters: &c.counters,
			send: func(message []byte) { e.send(stream, message) },
		}
		if len(c.Managers) > 1 {
			l.disconnect = func() { e.switchManager("") }
		}
		return l, nil
	}
	return e
}

// OwnerConfig configures an [Owner].
type OwnerConfig struct {
	Clock     *clock.Clock
	Namespace leasehold.Namespace
	Name      leasehold.OwnerID
	Addr      string
	OnBeat    bool // renew on the beat, like the library
	Send      func(*leaseholdv1.HoldRequest)
	Act       func(machine.Action) // receives the machine's actions; may be nil
}

// An Owner is one session: the state machine of the owner library and a timer. It transfers
// no state and serves no calls.
type Owner struct {
	OwnerConfig
	Granted chan struct{} // closed with the first lease
	Left    chan struct{} // closed when the leader has acknowledged Leave

	mu      sync.Mutex
	machine *machine.Machine
	timer   *time.Timer
	held    []leasehold.Lease
	served  bool // it has held a lease
	ended   bool
}

// NewOwner returns a session; Begin starts it.
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

// End stops the session without a Leave.
func (o *Owner) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.timer != nil {
		o.timer.Stop()
	}
}

// Leave releases all leases. It returns Left.
func (o *Owner) Leave() <-chan struct{} {
	o.step(machine.Leave{})
	return o.Left
}

// Resume continues with another connection.
func (o *Owner) Resume() {
	o.step(machine.Disconnected{})
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

// act executes the machine's actions. The caller holds the lock.
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

// Receive handles a grant of the manager.
func (o *Owner) Receive(grant *leaseholdv1.Grant) error {
	reply, err := wire.ToLeaseReply(grant, protocol.DefaultLimits)
	if err != nil {
		return err
	}
	o.step(machine.Reply{LeaseReply: reply})
	return nil
}

// Leases returns the held leases.
func (o *Owner) Leases() []leasehold.Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return nil
	}
	return o.held
}
