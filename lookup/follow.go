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
	question = leaseholdv1.FollowRequest
	answer   = leaseholdv1.FollowResponse
)

// A follower joins the machine with the managers: it carries its questions to
// them and their answers to it, and does what it decides.
type follower struct {
	lookup  *Lookup
	machine *machine.Machine                                    // only the driver's goroutine may use it
	woken   *driver.SuspendAware[machine.Event, machine.Action] // the same, which hears of a sleep first
	driver  *driver.Driver[machine.Event, machine.Action]
	link    *managerconn.Link[question, answer]
	errors  *failures
	broken  hints                           // that a connection broke: these do not fade
	denial  atomic.Pointer[leasehold.Error] // a manager has denied access
}

// queue bounds the messages that wait for the machine; then their streams do.
const queue = 16

func newFollower(l *Lookup) (*follower, error) {
	f := &follower{lookup: l, errors: newFailures(l.cfg.Managers), broken: hints{longest: shortestHint}}
	managers := make([]storage.ManagerID, len(l.cfg.Managers))
	for i, addr := range l.cfg.Managers {
		managers[i] = storage.ManagerID(addr)
	}
	var err error
	f.machine, err = machine.New(l.clock.Now(), machine.Config{
		Namespace: l.cfg.Namespace,
		Limits:    protocol.DefaultLimits,
		Managers:  managers,
		Poll:      l.cfg.Poll,
		Stale:     l.cfg.Stale,

		ConservativeRecovery: l.cfg.ConservativeRecovery,

		Retry: min(usualRetry, l.cfg.Poll),
		Rand:  rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), //nolint:gosec // for pauses
		Beats: l.clock.Beats(),
	})
	if err != nil {
		return nil, err
	}
	f.woken = driver.DetectSuspend[machine.Event, machine.Action](f.machine, l.detector, machine.Slept{})
	f.driver = driver.New[machine.Event, machine.Action](l.clock, f.woken, queue, f.act)
	dial := append(wire.DialOptions(), grpc.WithTransportCredentials(l.cfg.Credentials))
	f.link = managerconn.New(managerconn.Config[question, answer]{
		Managers:    l.cfg.Managers,
		DialOptions: append(dial, l.cfg.DialOptions...),
		Open: func(ctx context.Context, conn grpc.ClientConnInterface) (managerconn.Stream[question, answer], error) {
			return leaseholdv1.NewLookupServiceClient(conn).Follow(ctx)
		},
		Receive: f.receive,
		Down:    f.down,
		Logger:  l.cfg.Logger,
	})
	return f, nil
}

// run follows until the context ends.
func (f *follower) run(ctx context.Context) {
	defer f.link.Close()
	f.driver.Run(ctx)
}

// act does what the machine decided. A table and the losses on the way to it
// leave together.
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
			if question := wire.FromLookupRequest(a.Request); !failpoint.Drop("lookup/before-asking") {
				f.link.Send(string(a.To), question)
			}
		case machine.Unanswered:
			if denial := f.denial.Load(); denial != nil {
				f.lookup.refuse(denial)
			}
		case machine.Publish:
			newest = a.Table
		case machine.Losses:
			losses = append(losses, inOrder(a.Losses)...)
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

// publishAge makes known how old the table may be.
func (f *follower) publishAge(now mono.Instant) {
	age, _ := f.machine.Age(now)
	k := known{at: now.Add(-age), epoch: f.woken.Epoch()}
	if k != *f.lookup.known.Load() {
		f.lookup.known.Store(&k)
	}
}

// receive hands a manager's message to the machine. It waits if the machine is
// busy, and the manager with it.
func (f *follower) receive(from string, a *answer) {
	if version := a.GetVersion(); version != 0 { // after the first message it may be left out
		if err := wire.CheckVersion(version); err != nil {
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
		if failpoint.Drop("lookup/update-heard") {
			return
		}
		f.driver.Post(f.lookup.ctx, machine.Reply{LookupReply: reply})
	case *leaseholdv1.FollowResponse_NotLeader:
		hint, err := wire.ToNotLeader(kind.NotLeader)
		if err == nil {
			err = leasehold.Errorf("follow", leasehold.ErrNotLeader, from, "%s", cmp.Or(a.GetWhy(), "it does not lead, and does not know the table"))
			f.failed(from, err, machine.Redirect{From: storage.ManagerID(from), NotLeader: hint})
			return
		}
		f.invalid(from, err)
	case *leaseholdv1.FollowResponse_Refusal:
		f.refused(from, wire.ToRefusal(kind.Refusal))
	default:
		f.invalid(from, leasehold.Errorf("follow", leasehold.ErrInvalid, from,
			"unknown kind of message: the manager may be newer by more than one version"))
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
	if f.broken.take(f.lookup.clock.Now(), 0) {
		f.refresh()
	}
}

// refused handles a manager's refusal.
func (f *follower) refused(from string, why error) {
	f.failed(from, why, machine.Refused{From: storage.ManagerID(from), Kind: leasehold.KindOf(why)})
}

// invalid handles a manager that is unreachable, or whose answer is invalid.
func (f *follower) invalid(from string, why error) {
	f.failed(from, why, machine.Failed{From: storage.ManagerID(from)})
}

// failed records why a manager does not serve the lookup, and lets the machine try another. A missing
// namespace ends Open at once, because all managers have the same namespaces. A denial ends it only if no
// other manager is left: their access files may differ for a while.
func (f *follower) failed(from string, why error, event machine.Event) {
	l := f.lookup
	first, changed := f.errors.record(from, why.Error())
	switch leasehold.KindOf(why) {
	case leasehold.ErrNotFound:
		l.refuse(noSuchNamespace(l.cfg.Namespace, from))
	case leasehold.ErrDenied:
		if changed {
			l.cfg.Logger.Warn("the manager does not permit this lookup to follow", "namespace", l.cfg.Namespace, "manager", from, "why", why)
		}
		f.denial.Store(&leasehold.Error{Op: opOpen, Kind: leasehold.ErrDenied, Subject: string(l.cfg.Namespace), Err: why})
	default:
		if first && !l.hasTable() && l.ctx.Err() == nil {
			l.cfg.Logger.Warn("a manager has not answered yet; retrying", "namespace", l.cfg.Namespace, "manager", from, "why", why)
		}
	}
	l.cfg.Logger.Debug("manager does not answer", "namespace", l.cfg.Namespace, "manager", from, "why", why)
	f.driver.Post(l.ctx, event)
}

// hasTable reports whether Open has what it waits for.
func (l *Lookup) hasTable() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// refuse ends Open, if it still waits.
func (l *Lookup) refuse(why error) {
	select {
	case l.refused <- why:
	default: // said already
	}
}

// slept wakes the machine, which looks at the detector before anything else.
func (f *follower) slept() { _ = f.driver.Do(f.lookup.ctx, func(mono.Instant) {}) }

// refresh tells the machine to ask. If its queue is full, it is hearing from
// managers as it is.
func (f *follower) refresh() { f.driver.Offer(machine.Refresh{}) }
