package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/cast"
	"github.com/leasehold-dev/leasehold/owner"
)

// Role is the name of the role for [cast.Play].
const Role = "fleet"

// The orders that a fleet takes.
const (
	orderJoin   = "join"   // Batch owners, within Number nanoseconds
	orderMark   = "mark"   // remember the leases, and start the measurements again
	orderReport = "report" // with Number 1, with all renewals
)

// A Report is the state of all owners, and what has happened to them since the last mark.
type Report struct {
	Owners  int // that have joined
	Held    int // leases that are valid
	Same    int // owners that hold exactly the leases that they had at the mark, under the same generations, all valid
	Renewed int // owners that a leader of a later term has answered
	// The last owner that was answered by a leader of a later term, and the last that resumed its leases.
	LastRenewed, LastResumed time.Time
	// Leases that were suspended, resumed, granted and revoked.
	Suspended, Resumed, Granted, Revoked int
	Renewals                             []Renewal
}

// A fleet is all owners of a process.
type fleet struct {
	namespace leasehold.Namespace
	managers  []string
	members   []*member
}

type member struct {
	recorder
	owner  *owner.Owner
	marked []leasehold.Lease
}

// Start is that of the role. Its arguments are a namespace and the managers.
func Start(_ context.Context, args []string) (cast.Member, string, error) {
	if len(args) < 2 {
		return nil, "", errors.New("a fleet needs a namespace and managers")
	}
	return &fleet{namespace: leasehold.Namespace(args[0]), managers: args[1:]}, "", nil
}

// Obey carries out an order.
func (f *fleet) Obey(ctx context.Context, o cast.Order) (cast.Answer, error) {
	switch o.Do {
	case cast.OrderCPU:
		return cast.Answer{CPU: int64(cast.CPUTime())}, nil
	case orderJoin:
		return cast.Answer{}, f.join(ctx, o.Batch, time.Duration(o.Number)) //nolint:gosec // a duration of our own
	case orderMark:
		f.mark()
		return cast.Answer{}, nil
	case orderReport:
		data, err := json.Marshal(f.report(o.Number == 1))
		return cast.Answer{Data: data}, err
	}
	return cast.Answer{}, cast.UnknownOrder(o)
}

// join adds owners at equal intervals, and waits until the leader has accepted all of them.
func (f *fleet) join(ctx context.Context, n int, within time.Duration) error {
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	begun := time.Now()
	for i := range n {
		time.Sleep(time.Until(begun.Add(within * time.Duration(i) / time.Duration(n))))
		number := len(f.members)
		m := &member{}
		f.members = append(f.members, m)
		all.Go(func() {
			o, err := owner.Join(ctx, f.config(number, m))
			mu.Lock()
			defer mu.Unlock()
			m.owner = o
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	if len(errs) > 0 {
		return fmt.Errorf("%d of %d owners did not join: %w", len(errs), n, errs[0])
	}
	return nil
}

func (f *fleet) config(number int, m *member) owner.Config {
	return owner.Config{
		Namespace: f.namespace, Managers: f.managers,
		Name: leasehold.OwnerID(fmt.Sprintf("owner-%05d", number)), Addr: fmt.Sprintf("10.%d.%d.%d:80", number>>16, number>>8&255, number&255),
		OnSuspend: m.onSuspend, OnResume: m.onResume, OnGrant: m.onGrant, OnRevoke: m.onRevoke,
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(m.intercept)},
	}
}

func (f *fleet) mark() {
	for _, m := range f.members {
		m.marked = m.owner.Leases()
		m.mark()
	}
}

func (f *fleet) report(renewals bool) Report {
	var out Report
	for _, m := range f.members {
		m.add(&out, renewals)
	}
	return out
}

func (m *member) add(out *Report, renewals bool) {
	leases := m.owner.Leases()
	out.Owners++
	out.Held += len(leases)
	if len(leases) > 0 && slices.Equal(leases, m.marked) {
		out.Same++
	}
	r := &m.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.renewedAt.IsZero() {
		out.Renewed++
	}
	out.LastRenewed, out.LastResumed = later(out.LastRenewed, r.renewedAt), later(out.LastResumed, r.resumedAt)
	out.Suspended += r.suspended
	out.Resumed += r.resumed
	out.Granted += r.granted
	out.Revoked += r.revoked
	if renewals {
		out.Renewals = append(out.Renewals, r.renewals...)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Close ends the owners without a goodbye: their process ends next.
func (f *fleet) Close() error { return nil }

// A Process is a fleet in a process of its own. It is for one goroutine at a time.
type Process struct{ process *cast.Process }

// Begin starts a fleet without owners. It ends with its parent.
func Begin(ctx context.Context, namespace string, managers []string) (*Process, error) {
	p, err := cast.Begin(ctx, Role, append([]string{namespace}, managers...)...)
	if err != nil {
		return nil, err
	}
	if err := p.Await(); err != nil {
		p.Close()
		return nil, fmt.Errorf("starting owners for %s: %w", strings.Join(managers, ","), err)
	}
	return &Process{p}, nil
}

// Join adds n owners at equal intervals.
func (p *Process) Join(n int, within time.Duration) error {
	_, err := p.process.Ask(cast.Order{Do: orderJoin, Batch: n, Number: uint64(within)})
	return err
}

// Mark remembers the leases of all owners, and starts the measurements again.
func (p *Process) Mark() error {
	_, err := p.process.Ask(cast.Order{Do: orderMark})
	return err
}

// Report returns the state of all owners without their renewals.
func (p *Process) Report() (Report, error) { return p.report(0) }

// ReportRenewals returns the same with all renewals since the mark.
func (p *Process) ReportRenewals() (Report, error) { return p.report(1) }

func (p *Process) report(renewals uint64) (out Report, err error) {
	a, err := p.process.Ask(cast.Order{Do: orderReport, Number: renewals})
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(a.Data, &out)
}

// Close ends the process, and all owners with it.
func (p *Process) Close() { p.process.Close() }
