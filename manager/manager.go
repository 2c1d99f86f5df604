package manager

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/broadcast"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/manager/internal/memcatalog"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Manager is one manager of a group. Its methods may be called from many
// goroutines at once.
type Manager struct {
	cfg    Config
	log    *slog.Logger
	clock  *clock.Clock
	node   *managerproc.Machine // touched only within a step, or between two
	driver *driver.Driver[managerproc.Event, managerproc.Action]
	store  *storeIO
	tables store.Tables      // what store asks
	group  *memcatalog.Group // the same, if nothing is on disk; nil otherwise
	led    leasehold.Term    // the newest that we led in; touched only within a step

	owners  *broadcast.Owners
	lookups *broadcast.Lookups
	feeds   *feeds // for the namespaces that we follow
	leader  *leaderConn
	// standbys is who stands by while we lead.
	standbys *standbys
	events   *events
	orders   *orders
	repeats  repeats   // touched only within a step, or between two
	metrics  *metrics  // nil if nobody asks for them
	watch    *measured // nil in that case
	spans    spans

	server *grpc.Server
	health *health.Server

	ctx     context.Context // ends when everything must
	cancel  context.CancelFunc
	running sync.WaitGroup
	// reporting is what speaks to the leader: its connection outlives that.
	reporting sync.WaitGroup
	resigned  chan struct{} // closed when the store knows that we do not lead
	ended     chan struct{} // closed when nothing runs any more
	failure   error         // why; read after ended

	closing    sync.Once
	resign     sync.Once
	resigning  chan struct{} // closed when we are to hand leadership over
	leadership leadership
}

// Start starts a manager and returns when it listens. Whether it leads is found
// out in the background; with a store that does not answer it waits, and says
// so in the log.
func Start(cfg Config) (*Manager, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	session, err := leasehold.NewSession(cryptorand.Reader)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, clock: clock.New(), resigning: make(chan struct{}), resigned: make(chan struct{}), ended: make(chan struct{}),
		log: cfg.Logger.With("manager", cfg.Advertise),
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	process := managerproc.Config{
		Configure: func(n storage.Namespace) (machine.Config, error) {
			namespace, err := cfg.configure(n)
			namespace.Rand, namespace.Policy = cryptoRand(), m.metrics.timePolicy(n.Name, namespace.Policy)
			return namespace, err
		},
		Rand: cryptoRand(),
	}
	if cfg.Peers != nil {
		group := cfg.group()
		process.Appointment = group.Appointment()
	} else {
		process.Election = byrecord.Config{
			Self: storage.ManagerID(cfg.Advertise), Session: session, TTL: cfg.TTL, Drift: cfg.drift(),
			Rand: cryptoRand(),
		}
		process.Election.Boot, _ = cfg.Boot()
	}
	if m.node, err = managerproc.New(m.clock.Now(), process); err != nil {
		return nil, err
	}
	m.metrics = newMetrics(m)
	var awake stepper = driver.Woken[managerproc.Event, managerproc.Action](m.node, clock.NewDetector(m.clock), managerproc.Slept{})
	if m.metrics != nil {
		m.watch = &measured{stepper: awake, metrics: m.metrics}
		awake = m.watch
	}
	m.driver = driver.New(m.clock, awake, queueLength, m.act)
	streams := broadcast.Config{Self: cfg.Advertise, MaxStreams: cfg.MaxStreams, MaxDirect: cfg.maxDirect}
	m.owners, m.lookups = broadcast.NewOwners(m.ctx, streams), broadcast.NewLookups(m.ctx, streams)
	m.leader = newLeaderConn(m)
	m.standbys = newStandbys()
	m.feeds = newFeeds(m)
	m.events = newEvents()
	m.orders = newOrders()
	m.cfg.Store = m.metrics.timeStore(cfg.Store)
	m.store, m.tables = newStoreIO(m), m.cfg.Store
	if err := m.metrics.register(); err != nil {
		return nil, err
	}
	if cfg.Peers != nil {
		if err := m.joinGroup(); err != nil {
			m.metrics.close()
			return nil, err
		}
	}
	if err := m.register(); err != nil {
		m.cancel()
		m.leaveGroup()
		m.metrics.close()
		return nil, err
	}
	m.serve()
	return m, nil
}

// queueLength is how many events may wait for the machine before whoever brings
// them has to.
const queueLength = 4096

// register makes the server, with all of its services. One that nobody may call is
// an error even where everybody may do everything, so that no test can miss it.
func (m *Manager) register() error {
	m.server = grpc.NewServer(m.cfg.serverOptions(wire.ServerOptions())...)
	services := connlimit.Services{Server: m.server}
	if m.cfg.Access != nil {
		services.Admit = m.cfg.Access.Admit
	}
	leaseholdv1.RegisterOwnerServiceServer(services, &ownerService{m: m})
	leaseholdv1.RegisterLookupServiceServer(services, &lookupService{m: m})
	leaseholdv1.RegisterAdminServiceServer(services, &adminService{m: m})
	if m.group != nil {
		m.group.Register(services)
	}
	m.health = health.NewServer()
	m.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(services, m.health)
	reflection.Register(services)
	return access.Covers(m.server.GetServiceInfo())
}

// serve starts everything that runs.
func (m *Manager) serve() {
	m.running.Go(func() { m.driver.Run(m.ctx) })
	if m.cfg.Store != nil {
		m.running.Go(func() { m.cfg.Store.WatchRecord(m.ctx, m.store.recordSeen) })
	}
	m.running.Go(func() {
		if err := m.server.Serve(connlimit.New(m.cfg.Listener, m.cfg.gate(m.metrics.countDropped, m.log))); err != nil && m.ctx.Err() == nil {
			m.fail(&leasehold.Error{Op: "serve", Kind: leasehold.ErrUnavailable, Subject: m.cfg.Advertise, Err: err})
		}
	})
	m.running.Go(m.handOver)
	m.reporting.Go(m.report)
	if m.cfg.Members != nil {
		m.running.Go(m.moveStoreLeader)
	}
}

// moveStoreLeader sees to it that the store has another leader than the managers.
func (m *Manager) moveStoreLeader() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		if !m.leadership.isLeader() {
			continue
		}
		ctx, cancel := context.WithTimeout(m.ctx, m.storeTimeout())
		if err := m.cfg.Members.StepAside(ctx); err != nil {
			m.log.Debug("the store keeps its leader", "why", err)
		}
		cancel()
	}
}

// Addr returns the address at which others reach the manager.
func (m *Manager) Addr() string { return m.cfg.Advertise }

// Done returns a channel that is closed when the manager has ended, by Close or because
// it could not go on: then Err says why.
func (m *Manager) Done() <-chan struct{} { return m.ended }

// Err returns nil until Done is closed, and then why the manager ended:
// [leasehold.ErrClosed] if it was closed, or [leasehold.ErrUnavailable] if it could not serve.
func (m *Manager) Err() error {
	select {
	case <-m.ended:
		return m.failure
	default:
		return nil
	}
}

// fail ends the manager because it cannot go on.
func (m *Manager) fail(why error) {
	m.log.Error("the manager ends: " + why.Error())
	go m.end(why)
}

// Close hands leadership over, if this manager has it, and ends everything. If
// the context ends first, whoever takes over has to wait for the leader's time
// to run out; nothing is lost. It waits for what it started.
func (m *Manager) Close(ctx context.Context) error {
	m.health.Shutdown()
	m.resign.Do(func() { close(m.resigning) })
	var err error
	select {
	case <-m.resigned:
		failpoint.Here("manager/resigned")
	case <-m.ended:
	case <-ctx.Done():
		err = &leasehold.Error{Op: "close manager", Kind: leasehold.ErrUnavailable, Subject: m.cfg.Advertise, Err: errors.New("leadership was not handed over in time")}
	}
	m.end(leasehold.Errorf("manager", leasehold.ErrClosed, m.cfg.Advertise, "it was closed"))
	<-m.ended
	return err
}

// handOver asks the machine to hand leadership over when Close wants it. It runs
// from the beginning: Close may come while the manager ends by itself, and nothing
// may be started any more when that waits for all that was.
func (m *Manager) handOver() {
	select {
	case <-m.ctx.Done():
		return
	case <-m.resigning:
	}
	failpoint.Here("manager/before-resigning")
	if m.group != nil {
		m.group.Resign()
	}
	m.driver.PostUrgent(m.ctx, managerproc.Election{Event: byrecord.Resign{}})
}

func (m *Manager) end(why error) {
	m.closing.Do(func() {
		m.failure = why
		m.cancel()
		m.server.Stop() // waits for the handlers
		m.owners.Close()
		m.lookups.Close()
		m.feeds.close()
		m.reporting.Wait()
		m.leader.close()
		m.running.Wait() // for the driver too: nobody leads from here on
		m.spans.end("the manager was closed")
		m.store.wait()
		m.leaveGroup()
		m.metrics.close()
		close(m.ended)
	})
}

// storeTimeout is how long a question to the store may take before the machine
// is told that nobody knows.
func (m *Manager) storeTimeout() time.Duration { return max(m.cfg.TTL, 2*time.Second) }

// recordTimeout is that for the leader record. It is short because etcd drops a
// write that meets it without a leader of its own, and says nothing until the
// time is up: whoever waits for long then is late to take over. To give up too
// early costs a read.
func (m *Manager) recordTimeout() time.Duration {
	return min(max(m.cfg.TTL/2, time.Second), 2*time.Second)
}
