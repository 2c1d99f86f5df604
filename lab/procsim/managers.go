package procsim

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/internal/testkit/memnet"
	"github.com/leasehold-dev/leasehold/manager"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A host is the computer of a process.
type host struct {
	*computer
	name   string
	node   *memnet.Host // of the running process; nil: none is running
	frozen bool
}

func (w *world) newHost(name string) *host {
	r := w.random
	rate := 1 + w.clocks.spread*(2*r.Float64()-1)
	ahead := time.Duration(0)
	if w.clocks.apart > 0 {
		ahead = between(r, 0, w.clocks.apart)
	}
	return &host{computer: newComputer(rate, ahead, w.diskless), name: name}
}

func (h *host) alive() bool { return h.node != nil }

// runs reports whether the process runs: it is neither paused nor suspended.
func (h *host) runs() bool { return h.alive() && !h.frozen }

// A managerProc is a manager's computer, with the process that runs on it.
type managerProc struct {
	*host
	number  int
	manager *manager.Manager
	store   *kv.Store
	path    *path
	since   time.Time // of the start
	leaving bool      // it was stopped cleanly, and is closing
}

func (w *world) newManager(i int) *managerProc {
	m := &managerProc{host: w.newHost(fmt.Sprintf("m%d", i+1)), number: i}
	w.managers = append(w.managers, m)
	return m
}

func (m *managerProc) addr() string { return m.name + ":7400" }

// id is the manager's ID in package flease.
func (m *managerProc) id() flease.ID {
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.addr()))
	return flease.ID(max(1, h.Sum32()))
}

func (w *world) addrs() (all []string) {
	for i := range w.ttl {
		all = append(all, fmt.Sprintf("m%d:7400", i+1))
	}
	return all
}

func (w *world) startManager(m *managerProc) {
	if m.alive() {
		return // another fault has ended sooner
	}
	m.node, m.since, m.leaving = w.net.Host(m.name), time.Now(), false
	listener, err := m.node.Listen(7400)
	if err != nil {
		panic(err)
	}
	boot := m.name
	if m.number == 1 {
		boot = "" // unknown
	}
	cfg := manager.Config{
		Listener: listener, Advertise: m.addr(), DialOptions: dialer(m.node), TTL: w.ttl[m.number], Drift: w.drift,
		Boot:  func() (string, time.Duration) { return boot, m.Uptime() },
		Clock: clock.NewOn(m.computer), Logger: w.logger(m.name),
	}
	if w.diskless {
		cfg.Peers = &manager.Peers{Transport: w.memory, Longest: w.longest()}
		for _, addr := range w.addrs() {
			cfg.Peers.Members = append(cfg.Peers.Members, manager.Peer{Manager: addr})
		}
		w.heal(m)
	} else {
		m.path = &path{db: w.db, lag: lag{base: time.Millisecond}}
		m.store = kv.New(m.path, kv.Config{Now: m.Wall})
		cfg.Store = m.store
	}
	if m.manager, err = manager.Start(cfg); err != nil {
		panic(err)
	}
}

// longest is the time for which an owner of any namespace may hold a lease.
func (w *world) longest() (d time.Duration) {
	for _, s := range w.plan.spaces {
		d = max(d, s.hold())
	}
	return d
}

// killManager ends a manager as kill -9 does.
func (w *world) killManager(m *managerProc) {
	if !m.alive() {
		return
	}
	node, running, closing := m.node, m.manager, m.leaving
	m.node, m.frozen = nil, false
	node.Kill()
	if w.diskless {
		w.cutMemory(m, true)
	} else {
		w.db.set(func() { m.path.closed = true })
	}
	if !closing {
		_ = running.Close(ended())
	}
	<-running.Done()
	if m.store != nil {
		store := m.store
		w.spawn(func() { _ = store.Close() })
	}
}

// stopManager ends a manager as SIGTERM does: a leader resigns.
func (w *world) stopManager(m *managerProc, then func()) {
	running, node, store := m.manager, m.node, m.store
	m.leaving = true
	w.spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = running.Close(ctx)
		<-running.Done()
	})
	var exit func()
	exit = func() {
		select {
		case <-running.Done():
		default:
			w.after(time.Second, exit)
			return
		}
		if m.node != node {
			return // it was killed meanwhile
		}
		m.node = nil
		node.Kill()
		if store != nil {
			w.db.set(func() { m.path.closed = true })
			w.spawn(func() { _ = store.Close() })
		}
		then()
	}
	w.after(time.Second, exit)
}

// cutMemory cuts or heals all paths of a manager's election.
func (w *world) cutMemory(m *managerProc, cut bool) {
	for _, other := range w.managers {
		if other != m {
			w.cutElection(m, other, cut)
		}
	}
}

func (w *world) cutElection(a, b *managerProc, cut bool) {
	if cut {
		w.memory.Cut(a.id(), b.id())
		w.memory.Cut(b.id(), a.id())
	} else {
		w.memory.Mend(a.id(), b.id())
		w.memory.Mend(b.id(), a.id())
	}
}

// freeze pauses a process, or suspends its computer.
func (w *world) freeze(h *host, m *managerProc) {
	h.frozen = true
	h.node.Freeze()
	switch {
	case m == nil:
	case w.diskless:
		w.cutMemory(m, true)
	default:
		w.db.set(func() { m.path.cut = true })
	}
}

func (w *world) thaw(h *host, m *managerProc) {
	if !h.alive() {
		return
	}
	h.frozen = false
	h.node.Thaw()
	if m != nil {
		w.heal(m)
	}
}

// heal ends the cuts of a manager from the store or the election.
func (w *world) heal(m *managerProc) {
	switch {
	case w.diskless:
		w.cutMemory(m, false)
	case m.path != nil:
		w.db.set(func() { m.path.cut = false })
	}
}

func dialer(h *memnet.Host) []grpc.DialOption {
	retry := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second} // without jitter
	return []grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return h.Dial(ctx, addr) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: 3 * time.Second}),
	}
}

// An operator sends administrative requests.
type operator struct {
	world   *world
	clients []leaseholdv1.AdminServiceClient // by manager
	conns   []*grpc.ClientConn
}

func newOperator(w *world) *operator {
	o := &operator{world: w}
	options := append(wire.DialOptions(), dialer(w.net.Host("operator"))...)
	for _, addr := range w.addrs() {
		conn, err := grpc.NewClient("passthrough:///"+addr, options...)
		if err != nil {
			panic(err)
		}
		o.conns = append(o.conns, conn)
		o.clients = append(o.clients, leaseholdv1.NewAdminServiceClient(conn))
	}
	return o
}

func (o *operator) close() {
	for _, c := range o.conns {
		_ = c.Close()
	}
}

// create creates a namespace. It retries until a manager leads. A diskless group that has lost the namespace must know
// which generations were used.
func (o *operator) create(s *space) {
	s.mu.Lock()
	newest := uint64(s.newest)
	s.mu.Unlock()
	r := &leaseholdv1.CreateNamespaceRequest{Version: wire.Version, Namespace: &leaseholdv1.NamespaceConfig{
		Name: string(s.name), Policy: s.policy, Timing: &leaseholdv1.Timing{Lease: int64(s.lease)}, AfterGeneration: newest,
	}}
	o.ask(5*time.Minute, func(ctx context.Context, a leaseholdv1.AdminServiceClient) error {
		_, err := a.CreateNamespace(ctx, r)
		switch leasehold.KindOf(wire.ToError(err)) {
		case leasehold.ErrExists:
			return nil
		case leasehold.ErrInvalid: // the clocks were set back: the owners' terms decide
			r.Namespace.AfterGeneration = 0
		}
		return err
	})
}

// recreate creates the namespaces that a diskless group has lost, after all of its managers were restarted.
func (w *world) recreate() {
	if !w.diskless {
		return
	}
	for _, s := range w.spaces {
		w.spawn(func() { w.operator.create(s) })
	}
}

// status returns the leader and its term; "" if no manager replies.
func (o *operator) status() (leader string, term uint64) {
	o.ask(0, func(ctx context.Context, a leaseholdv1.AdminServiceClient) error {
		s, err := a.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		if s.GetTerm() > term {
			leader, term = s.GetLeader(), s.GetTerm()
		}
		return err
	})
	return leader, term
}

// ask sends a request to the running managers until one replies without an error.
func (o *operator) ask(within time.Duration, call func(context.Context, leaseholdv1.AdminServiceClient) error) {
	var failure error
	for end := time.Now().Add(within); ; {
		for i, a := range o.clients {
			if !o.world.managers[i].runs() {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			failure = call(ctx, a)
			cancel()
			if failure == nil {
				return
			}
		}
		if !time.Now().Before(end) {
			o.world.logf("operator: the request has failed: %v", failure)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
