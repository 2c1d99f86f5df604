package owner

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/loadmeter"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// maxQueuedMessages bounds the driver's queue. It exceeds a burst of a manager.
const maxQueuedMessages = 64

// Join makes this process an owner of a namespace. It returns when the leader counts it among
// the members, before it has leases: from then on, a server that closes moves its ranges to it.
//
// It fails at once if the configuration is invalid ([leasehold.ErrInvalid]), if
// the namespace does not exist ([leasehold.ErrNotFound]), if it has reached its limit of
// owners ([leasehold.ErrLimit]), or if no manager accepts a connection and the access file of
// at least one does not permit this name ([leasehold.ErrDenied]). Otherwise it retries until the context
// ends. That error contains the last response of each manager; it is [leasehold.ErrUnavailable], or
// [leasehold.ErrNameTaken] if another process has the name.
//
// The context bounds Join, not the lifetime of the owner, which ends with Close.
func Join(ctx context.Context, cfg Config) (*Owner, error) {
	c := cmp.Or(cfg.Clock, clock.New())
	o, err := newOwner(cfg, c, clock.NewDetector(c))
	if err != nil {
		return nil, err
	}
	return o.join(ctx)
}

// join starts an owner and waits until the leader accepts or refuses it.
func (o *Owner) join(ctx context.Context) (_ *Owner, err error) {
	ctx, span := o.spanOf(ctx, "leasehold.join")
	defer func() {
		endSpan(span, err)
		o.metrics.joined(err)
	}()
	o.start()
	select {
	case <-o.joined:
		failpoint.Here("owner/joined")
		return o, nil
	case err = <-o.refused:
	case <-ctx.Done():
		err = leasehold.Errorf(opJoin, o.responses.kind(), string(o.cfg.Namespace),
			"no leader has accepted this owner (%s): %w", o.responses.String(), ctx.Err())
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_ = o.Close(ended) // without waiting for an ack; Join returns the first error
	o.unregister()
	return nil, err
}

func newOwner(cfg Config, c *clock.Clock, d *clock.Detector) (_ *Owner, err error) {
	defer func() {
		if err != nil {
			cfg.discard()
		}
	}()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	holder, err := cfg.holder()
	if err != nil {
		return nil, err
	}
	logger := cfg.Logger.With("namespace", cfg.Namespace, "owner", cfg.Name, "session", holder.Session.Short())
	o := &Owner{
		cfg: cfg, id: holder.Session, clock: c, detector: d,
		callbacks: newCallbacks(&cfg, logger), notes: notes{logger: logger}, meter: loadmeter.New(c.Now(), cfg.Load == LoadChecks),
		joined: make(chan struct{}), refused: make(chan error, 1),
		parted: make(chan struct{}), left: make(chan struct{}), done: make(chan struct{}),
		promises: newPromises(cfg.MaxPromise), calls: newCalls(),
	}
	if o.metrics, err = newMetrics(&cfg); err != nil {
		return nil, err
	}
	if err := o.connect(logger); err != nil {
		return nil, err
	}
	o.responses.expect(o.link.Managers())
	o.outage = managerconn.NewOutage(o.link.Managers, logger)
	mc := machine.Config{
		Namespace: cfg.Namespace, Holder: holder, Promises: cfg.MaxPromise > 0, KeepSuspended: cfg.KeepSuspended, Beats: o.clock.Beats(),
		Rand: rand.New(rand.NewPCG(binary.LittleEndian.Uint64(holder.Session[:]), 0)), //nolint:gosec // jitter; the session is from crypto/rand
	}
	if cfg.Mover != nil {
		if err := cfg.listen(); err != nil {
			return nil, err
		}
		mc.Mover = cfg.Mover.Advertise
	}
	o.supervision = register(&cfg, holder.Session, logger)
	mc.Holder.DeathHash = o.supervision.hash
	m, err := machine.New(o.clock.Now(), mc)
	if err != nil {
		o.unregister()
		return nil, err
	}
	o.machine = newSession(m, o.detector, func(now mono.Instant, r *protocol.LeaseReply) { o.metrics.reply(&o.replies, now, r) })
	o.holding.Store(&holding{until: mono.Instant(0), areas: newAreas(nil), view: m.View(), superseded: make(chan struct{})})
	o.ctx, o.cancel = context.WithCancel(context.Background())
	if cfg.Mover != nil {
		o.moves = newMigration(&cfg, o.id, o.callbacks, o.calls, o.metrics,
			func(e machine.Event) bool { return o.driver.Post(o.ctx, e) },
			func() []leasehold.Lease { return o.holding.Load().areas.held })
	}
	o.driver = driver.New[machine.Event, machine.Action](o.clock, o.machine, maxQueuedMessages, o.act)
	return o, nil
}

// connect creates the link. It connects with the first message, when the owner is complete.
func (o *Owner) connect(logger *slog.Logger) (err error) {
	o.link, err = managerconn.New(managerconn.Config[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]{
		Managers:    o.cfg.Managers,
		Resolver:    o.cfg.Resolver,
		DialOptions: append(append(wire.DialOptions(), grpc.WithTransportCredentials(o.cfg.Credentials)), o.cfg.DialOptions...),
		Open:        hold,
		Receive:     o.receive,
		Down:        o.down,
		Unresolved:  func(target string, why error) { o.responses.failed(target, why) },
		Logger:      logger,
	})
	return err
}

// hold opens a stream to a manager.
func hold(ctx context.Context, conn grpc.ClientConnInterface) (managerconn.Stream[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse], error) {
	return leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
}

func (o *Owner) start() {
	o.metrics.open(o)
	o.callbacks.start()
	o.running.Go(func() { o.driver.Run(o.ctx) })
	o.running.Go(func() {
		// Every step of the machine checks the sleep detector first.
		o.detector.Watch(o.ctx, func() { _ = o.driver.Do(o.ctx, noStep) })
	})
	if o.promises.max > 0 {
		o.running.Go(o.awaitPromises)
	}
}

// noStep makes the driver run without an event.
func noStep(mono.Instant) {}

// down records why a manager is disconnected, and posts that to the machine, which does not
// wait for the reply of a disconnected leader. After a denial of access the machine
// retries once per renewal at most: an operator may correct the access file before the leases
// reach their deadline.
func (o *Owner) down(from string, why error) {
	err := wire.ToError(why)
	failpoint.Here("owner/hung-up")
	resolved := o.link.Resolved() // before Managers: a list that is resolved now may be longer
	changed, denial := o.responses.disconnected(from, err, o.link.Managers())
	switch {
	case leasehold.KindOf(err) == leasehold.ErrDenied:
		if changed {
			o.notes.logger.Warn("manager does not permit this owner to hold leases", "manager", from, "why", err)
		}
	case o.ctx.Err() == nil:
		o.outage.Failed(from, err)
	}
	if denial != nil && resolved {
		o.refuse(leasehold.ErrDenied, denial)
	}
	o.driver.Offer(machine.Disconnected{Manager: storage.ManagerID(from)})
}

// movesVersion is the first protocol version in which leaders move state.
const movesVersion = 2

// receive converts a manager's message to an event.
func (o *Owner) receive(from string, r *leaseholdv1.HoldResponse) {
	if err := o.event(from, r); err != nil {
		o.responses.failed(from, err)
		o.notes.logger.Debug("message dropped", "manager", from, "why", err)
	}
}

func (o *Owner) event(from string, r *leaseholdv1.HoldResponse) error {
	if v := r.GetVersion(); v != 0 { // only the first message must have it
		if err := wire.CheckManager(v); err != nil {
			return err
		}
		o.responses.setVersion(from, v)
	}
	switch kind := r.GetKind().(type) {
	case *leaseholdv1.HoldResponse_Grant:
		reply, err := wire.ToLeaseReply(kind.Grant, protocol.DefaultLimits)
		if err != nil {
			return err
		}
		if o.responses.version(from) < movesVersion {
			reply.Idle = true // an older leader does not set the field, and moves nothing
		}
		if failpoint.Drop("owner/reply-received") {
			return nil
		}
		o.contact.Store(int64(o.clock.Now()))
		o.responses.replied(from, reply)
		o.outage.Answered(from)
		o.driver.Post(o.ctx, machine.Reply{LeaseReply: reply})
	case *leaseholdv1.HoldResponse_NotLeader:
		hint, err := wire.ToNotLeader(kind.NotLeader)
		if err != nil {
			return err
		}
		switch response := o.responses.redirected(from, hint); {
		case hint.Leader != "":
			o.outage.Answered(from)
		case !o.hasJoined():
			o.outage.Failed(from, errors.New(response))
		}
		o.driver.Post(o.ctx, machine.Redirect{NotLeader: hint})
	case *leaseholdv1.HoldResponse_Refusal:
		err := wire.ToRefusal(kind.Refusal)
		changed := o.responses.failed(from, err)
		if final := o.refuse(leasehold.KindOf(err), err); changed && !final { // Join returns a final one
			o.notes.logger.Warn("manager refuses to serve this owner", "manager", from, "why", err)
		}
	}
	return nil
}
