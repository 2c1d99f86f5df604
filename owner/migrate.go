package owner

import (
	"context"
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
	"github.com/leasehold-dev/leasehold/internal/runtime/plural"
	"github.com/leasehold-dev/leasehold/internal/runtime/statemove"
)

const opMove = "move"

// A migration moves state as the machine decides: departures with the
// application's Export, arrivals with its Import. Each has a goroutine for its lifetime.
//
// No other part of the owner waits for the application. A function that hangs fails
// its move after a timeout, still counts towards the limit of concurrent functions, and is
// logged.
type migration struct {
	*Mover
	namespace leasehold.Namespace
	logger    *slog.Logger
	post      func(machine.Event) bool // blocks; reports false after the owner has ended
	held      func() []leasehold.Lease // the published leases; immutable
	callbacks *callbacks
	work      *calls
	metrics   *metrics // nil without Config.Metrics
	server    *statemove.Server
	exports   chan struct{} // semaphore of running Exports
	ctx       context.Context
	cancel    context.CancelCauseFunc
	running   sync.WaitGroup // departures, arrivals, and their watchdogs
	ended     chan struct{}  // closed when all have ended

	mu         sync.Mutex
	departures map[protocol.Ticket]*departure
	arrivals   map[protocol.Ticket]*arrival
	parting    bool
	calls      map[string]int // number of running calls by function of the application
}

// newMigration starts the server for transfers from other owners.
func newMigration(cfg *Config, session leasehold.Session, callbacks *callbacks, work *calls, metrics *metrics, post func(machine.Event) bool, held func() []leasehold.Lease) *migration {
	m := &migration{
		Mover: cfg.Mover, namespace: cfg.Namespace, logger: callbacks.logger, post: post, held: held, callbacks: callbacks, work: work, metrics: metrics,
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

// act executes an action about a move. It does not wait.
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

// progress returns a copy of a request with the progress of each departure.
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

// part refuses all arrivals that are not confirmed.
func (m *migration) part() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parting = true
	for _, a := range m.arrivals {
		if !a.confirmed {
			a.in.Refuse(m.partingError())
		}
	}
}

func (m *migration) partingError() error {
	return leasehold.Errorf(opMove, leasehold.ErrClosed, string(m.namespace), "this owner is leaving")
}

// close ends all moves, and closes the listener. It does not wait for the
// application: await does.
func (m *migration) close() {
	m.cancel(leasehold.Errorf(opMove, leasehold.ErrClosed, string(m.namespace), "this owner was closed"))
	m.server.Close()
	go func() {
		m.running.Wait()
		m.cancelArrivals()
		close(m.ended)
	}()
}

// cancelArrivals ends the arrivals whose source has not connected.
func (m *migration) cancelArrivals() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.arrivals {
		a.end(cancelled, 0, 0, nil)
	}
}

// await waits for the running functions of the application, as long as the context
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
		"a function of the Mover has not returned: %w", ctx.Err())
}

// call calls a function of the application. A panic is an error. A function that
// does not return after the end of its context is logged.
func (m *migration) call(ctx context.Context, name string, r leasehold.Range, f func() error) (err error) {
	m.count(name, 1)
	defer m.count(name, -1)
	returned := make(chan struct{})
	m.running.Go(func() { m.watch(ctx, name, r, returned) })
	defer close(returned)
	defer func() {
		if p := recover(); p != nil {
			m.logger.Error("function of the Mover panicked", "function", name, "range", r, "panic", p, "stack", string(debug.Stack()))
			err = leasehold.Errorf(opMove, leasehold.ErrInternal, r.String(), "%s has panicked: %v", name, p)
		}
	}()
	return f()
}

// watch logs a function that does not return after the end of its context.
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
	case <-time.After(hangTimeout):
	}
	m.logger.Warn("function of the Mover hangs: it does not return after the end of its context", "function", name, "range", r, "for", hangTimeout)
	<-returned
	m.logger.Warn("hanging function of the Mover has returned", "function", name, "range", r, "after", time.Since(ended))
}

func (m *migration) count(name string, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[name] += by; m.calls[name] == 0 {
		delete(m.calls, name)
	}
}

// stateSize is a log attribute.
func stateSize(records, bytes uint64) slog.Attr {
	return slog.String("state", plural.Count(records, "record")+" of "+plural.Count(bytes, "byte"))
}
