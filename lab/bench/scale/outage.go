package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	"github.com/leasehold-dev/leasehold/lookup"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An outage of all managers that is longer than a lease: when they return, every lease is suspended and every lookup has
// lost contact. Owners use the library. Most lookups are simulated, and some use the library too, to report losses.

const (
	quietBefore = 15 * time.Second // period before the outage in which renewals are measured
	afterReturn = 30 * time.Second // period after it in which they are measured
	// contactLimit is how long lookups may take to restore contact before the measurement ends without them.
	contactLimit = 100 * time.Second
	// libraryLookups is the number of lookups that have the whole table, and report losses.
	libraryLookups = 4
	// resumeGoal is the goal for the time from a manager's lead until every range is resumed, without the wait.
	resumeGoal = 5 * time.Second
	// gapLSNs is the minimum jump of LSNs if the leader could not exclude that its store was restored, and waited:
	// they then continue at a number derived from the wall clock.
	gapLSNs = 1 << 20
)

// An outageFinding is the result of an outage. Durations are from when a manager leads.
type outageFinding struct {
	size
	ranges      int
	down        time.Duration // from the last kill to the first start
	election    time.Duration // from the first start until a manager leads
	waited      bool          // the leader could not exclude that its store was restored
	quiet, back renewals
	renewed     time.Duration // until every owner was renewed
	resumed     time.Duration // until every range was resumed
	after       loadgen.Report
	half, all   time.Duration // until half of the lookups have contact, and until all have
	contacts    int           // lookups with contact at the end
	cpu         float64       // of all managers, until every lookup has contact, percent of a core
	bytes       float64       // to and from lookups meanwhile
	losses      int           // that library lookups report
	restored    int           // library lookups that reported contact as restored
	terms       int           // since a manager leads; more than 1 if there was another failover
}

type renewals struct {
	count          int
	p50, p99, most time.Duration
	unanswered     int // requests that were repeated because no reply came in time
}

// newRenewals returns the latency of the renewals sent in a period, without claims of suspended leases, whose answers a
// waiting leader delays on purpose.
func newRenewals(all []loadgen.Renewal, from, to time.Time) (out renewals) {
	var took []time.Duration
	for _, r := range all {
		switch {
		case r.Suspended || r.Sent < from.UnixNano() || r.Sent >= to.UnixNano():
		case r.Latency == 0:
			out.unanswered++
		default:
			took = append(took, r.Latency)
		}
	}
	if out.count = len(took); out.count > 0 {
		slices.Sort(took)
		out.p50, out.p99, out.most = report.Quantile(took, 0.5), report.Quantile(took, 0.99), report.Quantile(took, 1)
	}
	return out
}

// outageSteps is the number of reported steps of an outage.
const outageSteps = 7

// An outageBed is a testbed whose owners use the owner library.
type outageBed struct {
	*testbed
	owners *proc.Process
	losses lossCounter
}

func measureOutage(ctx context.Context, r *report.Run, s size) (*outageFinding, error) {
	t, err := newTestbed(ctx, r, s)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	b := &outageBed{testbed: t}
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	f := &outageFinding{size: s}
	before, err := b.baseline(ctx, f)
	if err != nil {
		return nil, err
	}
	leads, err := b.interrupt(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := b.recover(ctx, f, leads); err != nil {
		return nil, err
	}
	return f, b.conclude(ctx, f, before, leads)
}

// start starts owners and lookups, and waits until the table is complete.
func (b *outageBed) start(ctx context.Context) (err error) {
	b.run.Step("%s: %d owners join", b.name, b.size.owners)
	b.owners, err = loadgen.StartLibrary(ctx, loadgen.LibraryConfig{
		ClientsConfig: loadgen.ClientsConfig{Namespace: namespace, Managers: b.group.Addrs()},
		Name:          "owner", Count: b.size.owners, Within: b.size.grow,
	})
	if err != nil {
		return err
	}
	b.Add(b.owners.End) // without a drain, which would take long
	status, err := b.complete(ctx)
	if err != nil {
		return err
	}
	b.run.Step("%s: %d lookups connect", b.name, b.size.lookups)
	growth := loadgen.Growth{Lookups: b.size.lookups, Together: b.together, Within: b.size.grow / 4, LSN: status.GetLsn()}
	if _, err := b.clients.Grow(growth); err != nil {
		return err
	}
	b.Add(b.losses.close)
	if err := b.losses.open(ctx, b.group.Addrs()); err != nil {
		return err
	}
	return proc.Until(ctx, 500*time.Millisecond, func(context.Context) error { return b.contact() })
}

// complete waits until every range has an owner, and returns the state of the namespace.
func (b *outageBed) complete(ctx context.Context) (status *leaseholdv1.NamespaceStatus, err error) {
	err = proc.Until(ctx, 250*time.Millisecond, func(ctx context.Context) error {
		if status, err = b.group.Namespace(ctx, namespace); err != nil {
			return err
		}
		report, err := b.report(false)
		if err != nil {
			return err
		}
		if status.GetVacant() > 0 || int(status.GetOwners()) != b.size.owners || report.Held != int(status.GetRanges()) {
			return fmt.Errorf("%d owners hold %d of %d ranges, %d are vacant", status.GetOwners(), report.Held, status.GetRanges(), status.GetVacant())
		}
		return nil
	})
	return status, err
}

// report returns the state of all owners, with all renewals since the mark if requested.
func (b *outageBed) report(renewals bool) (out loadgen.Report, err error) {
	err = b.owners.Call("Report", renewals, &out)
	return out, err
}

// contact returns an error if there are lookups without contact.
func (b *outageBed) contact() error {
	now, err := b.clients.Look()
	if err == nil && now.Proven != b.size.lookups {
		err = fmt.Errorf("%d of %d lookups have contact", now.Proven, b.size.lookups)
	}
	return err
}

// baseline measures renewals while nothing happens, and returns the state of the namespace.
func (b *outageBed) baseline(ctx context.Context, f *outageFinding) (*leaseholdv1.NamespaceStatus, error) {
	if err := b.owners.Call("Mark", nil, nil); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := proc.Pause(ctx, quietBefore); err != nil {
		return nil, err
	}
	report, err := b.report(true)
	if err != nil {
		return nil, err
	}
	f.quiet = newRenewals(report.Renewals, begun, time.Now())
	status, err := b.complete(ctx)
	if err != nil {
		return nil, err
	}
	f.ranges = int(status.GetRanges())
	b.run.Step("%s: %d ranges; a renewal takes %v, p99 %v", b.name, f.ranges, f.quiet.p50, f.quiet.p99)
	return status, b.owners.Call("Mark", nil, nil)
}

// interrupt kills all managers, starts them again after the outage, and returns the time at which one of them began to lead.
func (b *outageBed) interrupt(ctx context.Context, f *outageFinding) (leads time.Time, err error) {
	var killed sync.WaitGroup
	for _, m := range b.group.All {
		killed.Go(m.Kill)
	}
	killed.Wait()
	begun := time.Now()
	b.run.Step("%s: all managers are down", b.name)
	if err := proc.Pause(ctx, b.outage); err != nil {
		return leads, err
	}
	started := time.Now()
	f.down = started.Sub(begun)
	if err := b.group.Start(ctx); err != nil {
		return leads, err
	}
	leader, err := b.group.Leader(ctx)
	if err != nil {
		return leads, err
	}
	status, err := b.group.Status(ctx, leader)
	if err != nil {
		return leads, err
	}
	for _, l := range status.GetLeaderships() { // the newest first
		if l.GetLeader() == leader.Member.Addr && l.GetTerm() == status.GetTerm() {
			leads = l.GetAt().AsTime()
		}
	}
	if leads.IsZero() {
		return leads, errors.New("the leader does not report when it began to lead")
	}
	f.election = leads.Sub(started)
	b.run.Step("%s: a manager leads after %v", b.name, f.election.Round(time.Millisecond))
	return leads, nil
}

// recover waits until every range is resumed and every lookup has contact.
func (b *outageBed) recover(ctx context.Context, f *outageFinding, leads time.Time) error {
	begun, err := b.clients.Look()
	if err != nil {
		return err
	}
	for {
		report, err := b.report(false)
		if err != nil {
			return err
		}
		counts, err := b.clients.Look()
		if err != nil {
			return err
		}
		since := time.Since(leads)
		f.contacts, f.bytes = counts.Proven, float64(counts.In+counts.Out-begun.In-begun.Out)
		if f.half == 0 && 2*counts.Proven >= b.size.lookups {
			f.half = since
		}
		if f.all == 0 && counts.Proven == b.size.lookups {
			f.all = since
			b.run.Step("%s: all lookups have contact after %v", b.name, since.Round(time.Millisecond))
		}
		if report.Same == b.size.owners && f.resumed == 0 {
			f.resumed, f.renewed = report.LastResumed.Sub(leads), report.LastRenewed.Sub(leads)
			b.run.Step("%s: all ranges are resumed after %v", b.name, f.resumed.Round(time.Millisecond))
		}
		if since > afterReturn && f.resumed > 0 && f.all > 0 || since > contactLimit {
			return nil
		}
		if err := proc.Pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// conclude compares the end with the time before the outage.
func (b *outageBed) conclude(ctx context.Context, f *outageFinding, before *leaseholdv1.NamespaceStatus, leads time.Time) (err error) {
	if f.after, err = b.report(true); err != nil {
		return err
	}
	f.back = newRenewals(f.after.Renewals, leads, leads.Add(afterReturn))
	f.losses, f.restored = int(b.losses.losses.Load()), int(b.losses.restored.Load())
	leader, err := b.group.Leader(ctx)
	if err != nil {
		return err
	}
	status, err := b.group.Status(ctx, leader)
	if err != nil {
		return err
	}
	for _, n := range status.GetNamespaces() {
		f.waited = f.waited || n.GetName() == namespace && n.GetLsn() >= before.GetLsn()+gapLSNs
	}
	terms := make(map[uint64]bool)
	for _, l := range status.GetLeaderships() {
		if l.GetLeader() != "" && !l.GetAt().AsTime().Before(leads) {
			terms[l.GetTerm()] = true
		}
	}
	f.terms = len(terms)
	for _, m := range b.group.All {
		used, err := proc.UsageOf(m.Pid())
		if err != nil {
			return err
		}
		f.cpu += 100 * used.CPU / (time.Since(leads) + f.election).Seconds()
	}
	return nil
}

// wait returns how long the leader waits if it cannot exclude that its store was restored.
func (f *outageFinding) wait() time.Duration {
	if !f.waited {
		return 0
	}
	return protocol.DefaultTiming().Hold()
}

type lossCounter struct {
	all              []*lookup.Lookup
	losses, restored atomic.Int64
}

func (c *lossCounter) open(ctx context.Context, addrs []string) error {
	for range libraryLookups {
		l, err := lookup.Open(ctx, lookup.Config{
			Namespace: namespace, Managers: addrs, OnLoss: func(losses []leasehold.Loss) { c.losses.Add(int64(len(losses))) },
			OnContact: func(contact lookup.Contact) {
				if !contact.Lost {
					c.restored.Add(1)
				}
			},
		})
		if err != nil {
			return err
		}
		c.all = append(c.all, l)
	}
	return nil
}

func (c *lossCounter) close() {
	for _, l := range c.all {
		_ = l.Close(context.Background()) // it only fails if it was closed already
	}
}

func addOutage(r *report.Result, f *outageFinding) {
	t := report.NewTable("", "measured from when a manager leads", "")
	t.Add("ranges in the table", f.ranges)
	t.Add("leases suspended during the outage", f.after.Suspended)
	t.Add("leader waits, because it cannot exclude a restored store", f.wait())
	t.Add("terms since then: more than 1 is another failover", f.terms)
	t.Add("every owner renewed after", seconds(f.renewed))
	t.Add("every range resumed, under its generation, after", seconds(f.resumed))
	t.Add("half of the lookups have contact after", seconds(f.half))
	t.Add("all lookups have contact after", seconds(f.all))
	t.Add("leases granted, revoked or with another generation", fmt.Sprintf("%d, %d, %d owners", f.after.Granted, f.after.Revoked, f.owners-f.after.Same))
	t.Add("losses that lookups report", f.losses)
	t.Add("all managers, percent of a core, until then", percent(f.cpu))
	t.Add("GB to and from lookups, until then", f.bytes/1e9)
	r.Add(report.Section{
		Title: "All managers down for a minute",
		Text: fmt.Sprintf("Three managers, %s owners with %s ranges together, and %s lookups. All managers are killed (SIGKILL) and started again after %v; one of them leads %s\n"+
			"after that. Meanwhile every lease has been suspended, and every lookup has lost contact. The owners use the owner library with its own connections,\n"+
			"so that they reconnect as an application's do; they share a process. %d of the lookups use the lookup library and report losses, the others follow the table only. A leader that cannot\n"+
			"exclude a restored store resumes nothing for one lease times drift, %v: after an outage of more than a minute on one computer, and after any outage otherwise.",
			report.Thousands(float64(f.owners)), report.Thousands(float64(f.ranges)), report.Thousands(float64(f.lookups)), f.down.Round(time.Second), seconds(f.election),
			libraryLookups, protocol.DefaultTiming().Hold()),
		Table: t,
	})
	l := report.NewTable("Renewals of valid leases", "", "renewals", "p50, ms", "p99, ms", "max, ms", "without a reply in time")
	for _, row := range []struct {
		name string
		renewals
	}{{fmt.Sprintf("%v before the outage", quietBefore), f.quiet}, {fmt.Sprintf("first %v after a manager leads", afterReturn), f.back}} {
		l.Add(row.name, row.count, milliseconds(row.p50), milliseconds(row.p99), milliseconds(row.most), row.unanswered)
	}
	r.Add(report.Section{Table: l})
	addOutageGoals(r, f)
}

func addOutageGoals(r *report.Result, f *outageFinding) {
	limit := resumeGoal + f.wait()
	name := "outage of all managers"
	r.Want(name+": a table of 64,000 ranges", float64(f.ranges), "ranges", f.ranges >= 64_000)
	r.Want(fmt.Sprintf("%s: every owner renewed within %v of the new leader", name, limit), f.renewed.Seconds(), "s", f.renewed > 0 && f.renewed <= limit)
	r.Want(fmt.Sprintf("%s: every range resumed within %v of the new leader", name, limit), f.resumed.Seconds(), "s", f.resumed > 0 && f.resumed <= limit)
	r.Want(name+": every lease of every owner is the one before, under its generation", float64(f.after.Same), "owners", f.after.Same == f.owners)
	r.Want(name+": no lease ends", float64(f.after.Revoked), "", f.after.Revoked == 0)
	r.Want(name+": no lookup reports a loss", float64(f.losses), "", f.losses == 0 && f.restored == libraryLookups)
	r.Want(name+": every lookup has contact again", float64(f.contacts), "lookups", f.contacts == f.lookups)
	suspendedAgain := f.after.Suspended - f.ranges
	r.Want(name+": no lease is suspended again after it was resumed", float64(suspendedAgain), "", suspendedAgain == 0)
	renew := protocol.DefaultTiming().Renew
	r.Want(fmt.Sprintf("%s: no renewal in the first %v takes longer than the renewal interval, %v", name, afterReturn, renew), f.back.most.Seconds(), "s",
		f.back.count > 0 && f.back.most <= renew)
}

func seconds(d time.Duration) string { return report.Number(d.Seconds()) + " s" }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
