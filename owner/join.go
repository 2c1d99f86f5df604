package owner

import (
	"context"
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

// inbox is how many messages may wait for the machine; more than a manager
// sends in a burst.
const inbox = 64

// Join makes this process an owner of a namespace. It returns once the leader
// has accepted it, which is before it has leases: those arrive when the manager
// sees fit.
//
// It fails at once if the configuration is wrong ([leasehold.ErrInvalid]), if
// there is no such namespace ([leasehold.ErrNotFound]), if the namespace takes no
// more owners ([leasehold.ErrLimit]), or if no manager speaks to it, and the access file of
// one does not permit it to join under this name ([leasehold.ErrDenied]). Otherwise it tries until the context
// ends, and then says what each manager last said: [leasehold.ErrUnavailable], or
// [leasehold.ErrNameTaken] if another process has the name.
//
// The context bounds Join, not the owner, which lives until Close.
func Join(ctx context.Context, cfg Config) (*Owner, error) {
	c := clock.New()
	o, err := newOwner(cfg, c, clock.NewDetector(c))
	if err != nil {
		return nil, err
	}
	return o.join(ctx)
}

// join starts an owner and waits until the leader has decided about it.
func (o *Owner) join(ctx context.Context) (_ *Owner, err error) {
	ctx, span := o.spanOf(ctx, "leasehold.join")
	defer func() {
		concluded(span, err)
		o.metrics.joined(err)
	}()
	o.start()
	select {
	case <-o.joined:
		failpoint.Here("owner/joined")
		return o, nil
	case err = <-o.refused:
	case <-ctx.Done():
		err = leasehold.Errorf(opJoin, o.hearsay.kind(), string(o.cfg.Namespace),
			"no leader has accepted this owner (%s): %w", o.hearsay.String(), ctx.Err())
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_ = o.Close(ended) // says goodbye if it can without waiting; what matters is the first error
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
		promises: promises{most: cfg.MaxPromise, nudge: make(chan struct{}, 1)},
	}
	if o.metrics, err = newMetrics(&cfg); err != nil {
		return nil, err
	}
	o.hearsay.expect(cfg.Managers)
	mc := machine.Config{
		Namespace: cfg.Namespace, Holder: holder, Promises: cfg.MaxPromise > 0, KeepSuspended: cfg.KeepSuspended, Beats: o.clock.Beats(),
		Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), //nolint:gosec // for backoffs; the session is from crypto/rand
	}
	if cfg.Mover != nil {
		if err := cfg.listen(); err != nil {
			return nil, err
		}
		mc.Mover = cfg.Mover.Advertise
	}
	m, err := machine.New(o.clock.Now(), mc)
	if err != nil {
		return nil, err
	}
	o.machine = newSession(m, o.detector, func(now mono.Instant, r *protocol.LeaseReply) { o.metrics.answer(&o.heard, now, r) })
	o.holding.Store(&holding{until: mono.Instant(0), areas: newAreas(nil), superseded: make(chan struct{})})
	o.ctx, o.cancel = context.WithCancel(context.Background())
	if cfg.Mover != nil {
		o.moves = newMigration(&cfg, o.id, o.callbacks, o.metrics,
			func(e machine.Event) bool { return o.driver.Post(o.ctx, e) },
			func() []leasehold.Lease { return o.holding.Load().areas.held })
	}
	o.driver = driver.New[machine.Event, machine.Action](o.clock, o.machine, inbox, o.act)
	o.link = managerconn.New(managerconn.Config[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]{
		Managers:    cfg.Managers,
		DialOptions: append(append(wire.DialOptions(), grpc.WithTransportCredentials(cfg.Credentials)), cfg.DialOptions...),
		Open:        hold,
		Receive:     o.receive,
		Down:        o.down,
		Logger:      logger,
	})
	return o, nil
}

// hold opens a conversation with a manager.
func hold(ctx context.Context, conn grpc.ClientConnInterface) (managerconn.Stream[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse], error) {
	return leaseholdv1.NewOwnerServiceClient(conn).Hold(ctx)
}

func (o *Owner) start() {
	o.metrics.open(o)
	o.callbacks.start()
	o.running.Go(func() { o.driver.Run(o.ctx) })
	o.running.Go(func() {
		// Any step of the machine looks at the detector first.
		o.detector.Watch(o.ctx, func() { _ = o.driver.Do(o.ctx, nothing) })
	})
	if o.promises.most > 0 {
		o.running.Go(o.keepPromises)
	}
}

func nothing(mono.Instant) {}

// down remembers why a manager cannot be spoken to, and hints at it: there is no
// use in waiting for an answer of a leader whose connection broke. One that does not
// permit us to speak is asked again at the machine's pace, once in a renewal at
// most: somebody may mend the managers' access file, and until then the leases run
// out.
func (o *Owner) down(from string, why error) {
	err := wire.ToError(why)
	failpoint.Here("owner/hung-up")
	first := o.hearsay.silent(from)
	news, refusal := o.hearsay.hangUp(from, err, o.cfg.Managers)
	switch {
	case leasehold.KindOf(err) == leasehold.ErrDenied:
		if news {
			o.notes.logger.Warn("the manager does not permit this owner to hold leases", "manager", from, "why", err)
		}
	case first && o.ctx.Err() == nil:
		o.notes.logger.Warn("a manager has not answered yet, and is asked again", "manager", from, "why", err)
	}
	if refusal != nil {
		o.refuse(leasehold.ErrDenied, refusal)
	}
	o.driver.Offer(machine.Disconnected{Manager: storage.ManagerID(from)})
}

// versionOfMoves is the version of the protocol in which leaders learned to move
// state.
const versionOfMoves = 2

// receive turns what a manager says into an event.
func (o *Owner) receive(from string, r *leaseholdv1.HoldResponse) {
	if err := o.event(from, r); err != nil {
		o.hearsay.add(from, err)
		o.notes.logger.Debug("message dropped", "manager", from, "why", err)
	}
}

func (o *Owner) event(from string, r *leaseholdv1.HoldResponse) error {
	if v := r.GetVersion(); v != 0 { // required only of the first message
		if err := wire.CheckVersion(v); err != nil {
			return err
		}
		o.hearsay.speaks(from, v)
	}
	switch kind := r.GetKind().(type) {
	case *leaseholdv1.HoldResponse_Grant:
		reply, err := wire.ToLeaseReply(kind.Grant, protocol.DefaultLimits)
		if err != nil {
			return err
		}
		if o.hearsay.version(from) < versionOfMoves {
			reply.Idle = true // it does not know the word, and moves nothing
		}
		if failpoint.Drop("owner/reply-received") {
			return nil
		}
		o.contact.Store(int64(o.clock.Now()))
		o.hearsay.hear(from, reply)
		o.driver.Post(o.ctx, machine.Reply{LeaseReply: reply})
	case *leaseholdv1.HoldResponse_NotLeader:
		hint, err := wire.ToNotLeader(kind.NotLeader)
		if err != nil {
			return err
		}
		o.hearsay.redirect(from, hint)
		o.driver.Post(o.ctx, machine.Redirect{NotLeader: hint})
	case *leaseholdv1.HoldResponse_Refusal:
		err := wire.ToRefusal(kind.Refusal)
		if o.hearsay.add(from, err) {
			o.notes.logger.Warn("the manager refuses to serve this owner", "manager", from, "why", err)
		}
		o.refuse(leasehold.KindOf(err), err)
	}
	return nil
}
