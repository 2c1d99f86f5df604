package lookup

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

type (
	request  = leaseholdv1.FollowRequest
	response = leaseholdv1.FollowResponse
)

// A follower connects the machine with the managers: it sends the machine's requests, passes
// the replies to the machine, and executes its actions.
type follower struct {
	lookup  *Lookup
	machine *machine.Machine                                    // only for the driver's goroutine
	woken   *driver.SuspendAware[machine.Event, machine.Action] // the machine, with a Slept event after a suspension
	driver  *driver.Driver[machine.Event, machine.Action]
	link    *managerconn.Link[request, response]
	errors  *failures
	outage  *managerconn.Outage
	broken  hints                           // limits the requests after broken connections; without backoff
	denial  atomic.Pointer[leasehold.Error] // the last denial of access
	from    leasehold.LSN                   // of the table before the newest one; only for the driver's goroutine
	at      leasehold.LSN                   // of the newest table
}

// maxQueuedMessages bounds the messages in the driver's queue. A full queue blocks the streams.
const maxQueuedMessages = 16

func newFollower(l *Lookup, random rand.Source) (*follower, error) {
	f := &follower{lookup: l, broken: hints{maxInterval: minHintInterval}}
	if err := f.connect(); err != nil {
		return nil, err
	}
	f.errors = newFailures(f.link.Managers)
	f.outage = managerconn.NewOutage(f.link.Managers, l.cfg.Logger.With("namespace", l.cfg.Namespace))
	var err error
	f.machine, err = machine.New(l.clock.Now(), machine.Config{
		Namespace: l.cfg.Namespace,
		Limits:    protocol.DefaultLimits,
		Managers:  managerIDs(f.link.Managers()),
		Resolving: !f.link.Resolved(),
		Poll:      l.cfg.Poll,
		Stale:     l.cfg.Stale,

		ConservativeRecovery: l.cfg.ConservativeRecovery,

		Retry: min(requestTimeout, l.cfg.Poll),
		Rand:  rand.New(random), //nolint:gosec // jitter
		Beats: l.clock.Beats(),
	})
	if err != nil {
		return nil, err
	}
	f.woken = driver.DetectSuspend[machine.Event, machine.Action](f.machine, l.detector, machine.Slept{})
	f.driver = driver.New[machine.Event, machine.Action](l.clock, f.woken, maxQueuedMessages, f.act)
	return f, nil
}

// connect creates the link. It connects with the first message, when the follower is complete.
func (f *follower) connect() (err error) {
	cfg := &f.lookup.cfg
	dial := append(wire.DialOptions(), grpc.WithTransportCredentials(cfg.Credentials))
	f.link, err = managerconn.New(managerconn.Config[request, response]{
		Managers:    cfg.Managers,
		Resolver:    cfg.Resolver,
		Changed:     f.changed,
		DialOptions: append(dial, cfg.DialOptions...),
		Open: func(ctx context.Context, conn grpc.ClientConnInterface) (managerconn.Stream[request, response], error) {
			return leaseholdv1.NewLookupServiceClient(conn).Follow(ctx)
		},
		Receive:    f.receive,
		Down:       f.down,
		Unresolved: func(target string, why error) { f.errors.record(target, why.Error()) },
		Logger:     cfg.Logger,
	})
	return err
}

// changed handles new addresses of the managers.
func (f *follower) changed(addrs []string) {
	f.errors.keep(addrs)
	f.driver.Post(f.lookup.ctx, machine.Managers{All: managerIDs(addrs)})
}

func managerIDs(addrs []string) []storage.ManagerID {
	ids := make([]storage.ManagerID, len(addrs))
	for i, addr := range addrs {
		ids[i] = storage.ManagerID(addr)
	}
	return ids
}

func (f *follower) run(ctx context.Context) {
	defer f.link.Close()
	f.driver.Run(ctx)
}

// act executes the actions of one step. The table of the step and its losses enter the
// outbox together.
func (f *follower) act(now mono.Instant, actions []machine.Action) {
	var (
		newest *table.Table
		losses []leasehold.Loss
		change *Contact
	)
	for _, a := range actions {
		f.lookup.metrics.act(a)
		switch a := a.(type) {
		case machine.Send:
			if r := wire.FromLookupRequest(a.Request); !failpoint.Drop("lookup/before-asking") {
				f.link.Send(string(a.To), r)
			}
		case machine.Unanswered:
			if denial := f.denial.Load(); denial != nil {
				f.lookup.failOpen(denial)
			}
		case machine.Publish:
			newest = a.Table
			f.from, f.at = f.at, a.Table.LSN()
		case machine.Losses:
			losses = append(losses, inOrder(numberAcross(f.machine.Table(), f.from, a.Losses))...)
		case machine.Contact:
			change = &Contact{Lost: a.Lost, Age: a.Age, LSN: f.machine.LSN()}
		case machine.Note:
			f.log(a)
		}
	}
	f.publishAge(now)
	if newest != nil || len(losses) > 0 || change != nil {
		f.lookup.outbox.put(newest, losses, change)
	}
}

// publishAge publishes the time when the table was last complete.
func (f *follower) publishAge(now mono.Instant) {
	age, _ := f.machine.Age(now)
	c := complete{at: now.Add(-age), epoch: f.woken.Epoch()}
	if c != *f.lookup.complete.Load() {
		f.lookup.complete.Store(&c)
	}
}

// receive passes a manager's message to the machine. It blocks while the driver's queue is
// full, so that flow control throttles the manager.
func (f *follower) receive(from string, a *response) {
	if version := a.GetVersion(); version != 0 { // only the first message must have it
		if err := wire.CheckManager(version); err != nil {
			f.invalid(from, err)
			return
		}
	}
	switch kind := a.GetKind().(type) {
	case *leaseholdv1.FollowResponse_Update:
		reply, err := wire.ToLookupReply(kind.Update, protocol.DefaultLimits)
		if err != nil {
			f.invalid(from, err)
			return
		}
		if failpoint.Drop("lookup/update-received") {
			return
		}
		f.outage.Answered(from)
		f.driver.Post(f.lookup.ctx, machine.Reply{LookupReply: reply})
	case *leaseholdv1.FollowResponse_NotLeader:
		hint, err := wire.ToNotLeader(kind.NotLeader)
		if err == nil {
			err = leasehold.Errorf("follow", leasehold.ErrNotLeader, from, "%s", cmp.Or(a.GetWhy(), "the manager is not the leader and has no table"))
			f.failed(from, err, machine.Redirect{From: storage.ManagerID(from), NotLeader: hint})
			return
		}
		f.invalid(from, err)
	case *leaseholdv1.FollowResponse_Refusal:
		f.refused(from, wire.ToRefusal(kind.Refusal))
	default:
		f.invalid(from, leasehold.Errorf("follow", leasehold.ErrInvalid, from,
			"unknown kind of message: the manager may be more than one version newer"))
	}
}

// down handles the end of a stream. The lookup may have received changes on it: so it sends a request at
// once, unless access was denied.
func (f *follower) down(from string, why error) {
	err := wire.ToError(why)
	if leasehold.KindOf(err) == leasehold.ErrDenied {
		f.refused(from, err)
		return
	}
	f.invalid(from, err)
	if f.broken.allow(f.lookup.clock.Now(), 0) {
		f.refresh()
	}
}

// refused handles a manager's refusal.
func (f *follower) refused(from string, why error) {
	f.failed(from, why, machine.Refused{From: storage.ManagerID(from), Kind: leasehold.KindOf(why)})
}

// invalid handles a manager that is unreachable, or whose reply is invalid.
func (f *follower) invalid(from string, why error) {
	f.failed(from, why, machine.Failed{From: storage.ManagerID(from)})
}

// failed records why a manager does not serve the lookup, and lets the machine try another. A missing
// namespace ends Open at once, because all managers have the same namespaces. A denial ends it only if no
// other manager is left: their access files may differ for a while.
func (f *follower) failed(from string, why error, event machine.Event) {
	l := f.lookup
	changed := f.errors.record(from, why.Error())
	switch leasehold.KindOf(why) {
	case leasehold.ErrNotFound:
		l.failOpen(noSuchNamespace(l.cfg.Namespace, from))
	case leasehold.ErrDenied:
		if changed {
			l.cfg.Logger.Warn("manager does not permit this lookup to follow", "namespace", l.cfg.Namespace, "manager", from, "why", why)
		}
		f.denial.Store(&leasehold.Error{Op: opOpen, Kind: leasehold.ErrDenied, Subject: string(l.cfg.Namespace), Err: why})
	default:
		redirect, redirected := event.(machine.Redirect)
		if l.ctx.Err() == nil && (!redirected || redirect.Leader == "" && !l.hasTable()) {
			f.outage.Failed(from, why)
		}
	}
	l.cfg.Logger.Debug("manager does not reply", "namespace", l.cfg.Namespace, "manager", from, "why", why)
	f.driver.Post(l.ctx, event)
}

func (l *Lookup) hasTable() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// failOpen ends Open with an error, if it still waits.
func (l *Lookup) failOpen(err error) {
	select {
	case l.failed <- err:
	default: // Open has an error already
	}
}

// slept makes the driver run the machine, which checks the sleep detector first.
func (f *follower) slept() { _ = f.driver.Do(f.lookup.ctx, func(mono.Instant) {}) }

// refresh makes the machine send a request. A full queue drops it: it contains messages of
// managers anyway.
func (f *follower) refresh() { f.driver.Offer(machine.Refresh{}) }
