package owner

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/statemove"
)

const opMove = "move"

// A migration moves state, as the machine wants it: in its departures with the
// application's Export, in its arrivals with its Import. Each has a goroutine
// that lives through all of it.
//
// Nothing of ours waits for the application. A function of it that hangs fails
// its move when the time for that has come, keeps its place among those that may
// run at once, and is named in the log.
type migration struct {
	*Mover
	namespace leasehold.Namespace
	logger    *slog.Logger
	post      func(machine.Event) bool // waits; reports false when the owner has ended
	held      func() []leasehold.Lease // what the machine has published last; immutable
	callbacks *callbacks
	metrics   *metrics // nil if nobody asks for them
	server    *statemove.Server
	exports   chan struct{} // has one for each Export that runs
	ctx       context.Context
	cancel    context.CancelCauseFunc
	running   sync.WaitGroup // departures, arrivals, and what watches over them
	ended     chan struct{}  // closed when none runs any more

	mu         sync.Mutex
	departures map[protocol.Ticket]*departure
	arrivals   map[protocol.Ticket]*arrival
	parting    bool
	calls      map[string]int // functions of the application that run
}

// newMigration starts to listen for other owners.
func newMigration(cfg *Config, session leasehold.Session, callbacks *callbacks, metrics *metrics, post func(machine.Event) bool, held func() []leasehold.Lease) *migration {
	m := &migration{
		Mover: cfg.Mover, namespace: cfg.Namespace, logger: callbacks.logger, post: post, held: held, callbacks: callbacks, metrics: metrics,
		exports: make(chan struct{}, statemove.MaxTransfers), ended: make(chan struct{}),
		departures: make(map[protocol.Ticket]*departure), arrivals: make(map[protocol.Ticket]*arrival),
		calls: make(map[string]int),
	}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.server = statemove.Serve(m.Listener, statemove.ServerConfig{
		Namespace: cfg.Namespace, Session: session, Idle: m.IdleTimeout, Logger: m.logger,
		Credentials: m.ServerCredentials,
	})
	return m
}

// act carries out what the machine has decided about moves. It does not wait.
func (m *migration) act(a machine.Action) {
	switch a := a.(type) {
	case machine.StartMove:
		m.start(a.Departure)
	case machine.Stop:
		m.stop(a.Ticket)
	case machine.EndMove:
		m.end(a.Ticket)
	case machine.Expect:
		m.expect(a.Arrival)
	case machine.Confirm:
		m.confirm(a.Ticket)
	case machine.Install:
		m.install(a.Ticket, a.Lease)
	case machine.Discard:
		m.discard(a.Ticket)
	}
}

// progress returns a request with how far each departure is. What the machine
// has made is not changed.
func (m *migration) progress(r *protocol.LeaseRequest) *protocol.LeaseRequest {
	if len(r.Moves) == 0 {
		return r
	}
	out := *r
	out.Moves = slices.Clone(r.Moves)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range out.Moves {
		if d := m.departures[out.Moves[i].Ticket]; d != nil {
			out.Moves[i].Records, out.Moves[i].Bytes = d.progress()
		}
	}
	return &out
}

// part refuses state from now on, but for what has been confirmed.
func (m *migration) part() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parting = true
	for _, a := range m.arrivals {
		if !a.confirmed {
			a.in.Refuse(m.leaving())
		}
	}
}

func (m *migration) leaving() error {
	return leasehold.Errorf(opMove, leasehold.ErrClosed, string(m.namespace), "this owner is about to leave")
}

// close ends all moves, and closes the listener. It does not wait for the
// application: await does.
func (m *migration) close() {
	m.cancel(leasehold.Errorf(opMove, leasehold.ErrClosed, string(m.namespace), "this owner was closed"))
	m.server.Close()
	go func() {
		m.running.Wait()
		m.forget()
		close(m.ended)
	}()
}

// forget ends what never began: moves to here whose source has not come.
func (m *migration) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.arrivals {
		a.end(cancelled, 0, 0, nil)
	}
}

// await waits until no function of the application runs, as long as the context
// allows.
func (m *migration) await(ctx context.Context) error {
	select {
	case <-m.ended:
		return nil
	default:
	}
	select {
	case <-m.ended:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return leasehold.Errorf(opClose, leasehold.ErrUnavailable, strings.Join(slices.Sorted(maps.Keys(m.calls)), ", "),
		"a function of the mover has not returned: %w", ctx.Err())
}

// call calls a function of the application. One that panics has failed. One that
// has not returned long after its context has ended is named.
func (m *migration) call(ctx context.Context, name string, r leasehold.Range, f func() error) (err error) {
	m.count(name, 1)
	defer m.count(name, -1)
	returned := make(chan struct{})
	m.running.Go(func() { m.watch(ctx, name, r, returned) })
	defer close(returned)
	defer func() {
		if p := recover(); p != nil {
			m.logger.Error("a function of the mover has panicked", "function", name, "range", r, "panic", p, "stack", string(debug.Stack()))
			err = leasehold.Errorf(opMove, leasehold.ErrInternal, r.String(), "%s has panicked: %v", name, p)
		}
	}()
	return f()
}

func (m *migration) watch(ctx context.Context, name string, r leasehold.Range, returned <-chan struct{}) {
	select {
	case <-returned:
		return
	case <-ctx.Done():
	}
	ended := time.Now()
	select {
	case <-returned:
		return
	case <-time.After(hangs):
	}
	m.logger.Warn("a function of the mover hangs: its context has ended, and it does not return", "function", name, "range", r, "for", hangs)
	<-returned
	m.logger.Warn("a function of the mover has returned at last", "function", name, "range", r, "after", time.Since(ended))
}

func (m *migration) count(name string, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[name] += by; m.calls[name] == 0 {
		delete(m.calls, name)
	}
}

// figures are what a log line about a move says.
func figures(records, bytes uint64) slog.Attr {
	return slog.String("state", fmt.Sprintf("%d records of %d bytes", records, bytes))
}
