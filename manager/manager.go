package manager

import (
	"context"
	cryptorand "crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
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
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/broadcast"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/connlimit"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/logthrottle"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	"github.com/leasehold-dev/leasehold/manager/internal/autosharding"
	"github.com/leasehold-dev/leasehold/manager/internal/memcatalog"
	autoshardingv1 "github.com/leasehold-dev/leasehold/proto/autosharding/v1"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Manager is one manager of a group. Its methods are safe for concurrent use.
type Manager struct {
	cfg    Config
	log    *slog.Logger
	clock  *clock.Clock
	node   *managerproc.Machine // touched only on the driver's goroutine
	driver *driver.Driver[managerproc.Event, managerproc.Action]
	store  *storeIO
	tables store.Tables      // the store or the group
	group  *memcatalog.Group // nil unless the group is diskless
	led    leasehold.Term    // of this manager's newest leadership; touched only within a step

	owners    *broadcast.Owners
	lookups   *broadcast.Lookups
	sharding  *autosharding.Service
	feeds     *feeds // of the followed namespaces, on a standby
	leader    *leaderConn
	standbys  *standbys // on the leader
	events    *events
	orders    *orders
	deaths    *deaths
	creations creations
	repeats   repeats   // touched only on the driver's goroutine
	metrics   *metrics  // nil without Config.Metrics
	watch     *measured // nil without Config.Metrics
	spans     spans
	versions  *logthrottle.Throttle[struct{}] // of log lines about clients' versions

	server *grpc.Server
	health *health.Server

	ctx       context.Context // of all goroutines; end cancels it
	cancel    context.CancelFunc
	running   sync.WaitGroup
	reporting sync.WaitGroup // of report; the connection to the leader is closed after it

	closing    atomic.Bool
	resign     sync.Once
	resigning  chan struct{} // closed by Close: hand over leadership
	resigned   chan struct{} // closed when the handover is stored
	ended      chan struct{} // closed when all goroutines have ended
	failure    error         // the reason; read after ended
	leadership leadership
}

// Start starts a manager, and returns when it accepts connections. Elections run in the
// background. While the store is unreachable the manager retries, and logs it.
func Start(cfg Config) (*Manager, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	session, err := leasehold.NewSession(cryptorand.Reader)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, clock: cfg.Clock, resigning: make(chan struct{}), resigned: make(chan struct{}), ended: make(chan struct{}),
		log: cfg.Logger.With("manager", cfg.Advertise), creations: make(creations), versions: logthrottle.New[struct{}](versionLogInterval),
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
			Self: storage.ManagerID(cfg.Advertise), Session: session, TTL: cfg.TTL, Drift: mono.Drift(cfg.Drift),
			Rand: cryptoRand(),
		}
		process.Election.Boot, _ = cfg.Boot()
	}
	if m.node, err = managerproc.New(m.clock.Now(), process); err != nil {
		return nil, err
	}
	m.metrics = newMetrics(m)
	var awake stepper = driver.DetectSuspend[managerproc.Event, managerproc.Action](m.node, clock.NewDetector(m.clock), managerproc.Slept{})
	if m.metrics != nil {
		m.watch = &measured{stepper: awake, metrics: m.metrics}
		awake = m.watch
	}
	m.driver = driver.New(m.clock, awake, queueLength, m.act)
	streams := broadcast.Config{Self: cfg.Advertise, MaxStreams: cfg.MaxStreams, MaxDirect: cfg.maxDirect}
	m.owners, m.lookups = broadcast.NewOwners(m.ctx, streams), broadcast.NewLookups(m.ctx, streams)
	m.sharding = m.newSharding()
	m.leader = newLeaderConn(m)
	m.standbys = newStandbys()
	m.feeds = newFeeds(m)
	m.events = newEvents()
	m.orders = newOrders()
	m.deaths = newDeaths()
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

// queueLength is the length of the machine's event queue, beyond which senders block.
const queueLength = 4096

// register creates the gRPC server with its services. A method without an access rule is an error
// even without a policy, so that every test finds it.
func (m *Manager) register() error {
	m.server = grpc.NewServer(m.cfg.serverOptions(wire.ServerOptions())...)
	services := connlimit.Services{Server: m.server}
	if m.cfg.Access != nil {
		services.Admit = m.cfg.Access.Admit
	}
	leaseholdv1.RegisterOwnerServiceServer(services, &ownerService{m: m})
	leaseholdv1.RegisterLookupServiceServer(services, &lookupService{m: m})
	leaseholdv1.RegisterAdminServiceServer(services, &adminService{m: m})
	autoshardingv1.RegisterAutoshardingServiceServer(services, m.sharding)
	if m.group != nil {
		m.group.Register(services)
	}
	m.health = health.NewServer()
	m.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(services, m.health)
	reflection.Register(services)
	return access.Covers(m.server.GetServiceInfo())
}

// serve starts the goroutines.
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

// moveStoreLeader transfers the leadership of the embedded store to another member while this
// manager leads, so that a crash of this process costs one election, not two.
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
			m.log.Debug("transfer of the store's leadership failed", "why", err)
		}
		cancel()
	}
}

// Addr returns the address at which others reach the manager.
func (m *Manager) Addr() string { return m.cfg.Advertise }

// Done returns a channel that is closed when the manager has ended, by Close or a failure. Err
// then returns the reason.
func (m *Manager) Done() <-chan struct{} { return m.ended }

// Err returns nil until Done is closed, and then the reason: [leasehold.ErrClosed] after Close, or
// [leasehold.ErrUnavailable] if the manager could not serve.
func (m *Manager) Err() error {
	select {
	case <-m.ended:
		return m.failure
	default:
		return nil
	}
}

// fail ends the manager with an error.
func (m *Manager) fail(why error) {
	m.log.Error("manager failed and ends: " + why.Error())
	go m.end(why)
}

// Close hands over leadership, if this manager leads, and stops the manager. If the context ends
// first, the next leader waits until this leadership expires; no state is lost. Close waits for
// all goroutines.
func (m *Manager) Close(ctx context.Context) error {
	m.health.Shutdown()
	m.resign.Do(func() { close(m.resigning) })
	var err error
	select {
	case <-m.resigned:
		failpoint.Here("manager/resigned")
	case <-m.ended:
	case <-ctx.Done():
		err = &leasehold.Error{Op: "close manager", Kind: leasehold.ErrUnavailable, Subject: m.cfg.Advertise, Err: errors.New("handing over leadership timed out")}
	}
	m.end(leasehold.Errorf("manager", leasehold.ErrClosed, m.cfg.Advertise, "the manager is closed"))
	<-m.ended
	return err
}

// handOver resigns when Close requests it. It runs from the start: Close may be called while the
// manager ends after a failure, and no goroutine may start after running.Wait.
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

// end ends the manager, unless it is ending already. Callers that need the end wait for m.ended.
func (m *Manager) end(why error) {
	if !m.closing.CompareAndSwap(false, true) {
		return
	}
	m.failure = why
	m.cancel()
	m.server.Stop() // waits for the handlers
	m.owners.Close()
	m.lookups.Close()
	m.sharding.Close()
	m.feeds.close()
	m.reporting.Wait()
	m.leader.close()
	m.running.Wait() // the driver has ended: this manager does not lead from here on
	m.spans.end("the manager was closed")
	m.store.wait()
	m.leaveGroup()
	m.metrics.close()
	close(m.ended)
}

// storeTimeout is the deadline of a request to the store, after which its outcome is unknown.
func (m *Manager) storeTimeout() time.Duration { return max(m.cfg.TTL, 2*time.Second) }

// recordTimeout is the deadline of a request for the leader record. It is short because etcd,
// while it has no leader, drops writes without a reply, and a long deadline would then delay
// the takeover. A deadline that is too short costs a read.
func (m *Manager) recordTimeout() time.Duration {
	return min(max(m.cfg.TTL/2, time.Second), 2*time.Second)
}
