package scale

import (
	"context"
	"errors"
	"fmt"
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
	afterReturn = 30 * time.Second // the minimum period after the outage in which everything is observed
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
	ranges   int
	election time.Duration // from the first start until a manager leads
	waited   bool          // the leader could not exclude that its store was restored
	resumed  time.Duration // until every range was resumed
	after    loadgen.Report
	contact  time.Duration // until all lookups have contact
	contacts int           // lookups with contact at the end
	losses   int           // that library lookups report
	restored int           // library lookups that reported contact as restored
}

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
	before, err := b.start(ctx)
	if err != nil {
		return nil, err
	}
	f := &outageFinding{size: s, ranges: int(before.GetRanges())}
	leads, err := b.interrupt(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := b.recover(ctx, f, leads); err != nil {
		return nil, err
	}
	return f, b.conclude(ctx, f, before)
}

// start starts owners and lookups, waits until the table is complete, and returns its state.
func (b *outageBed) start(ctx context.Context) (*leaseholdv1.NamespaceStatus, error) {
	b.run.Step("%s: %d owners join", b.name, b.size.owners)
	config := loadgen.ClientsConfig{Namespace: namespace, Managers: b.group.Addrs()}
	var err error
	b.owners, err = loadgen.StartLibrary(ctx, loadgen.LibraryConfig{ClientsConfig: config, Name: "owner", Count: b.size.owners, Within: b.grow})
	if err != nil {
		return nil, err
	}
	b.Add(b.owners.Close)
	status, err := b.complete(ctx)
	if err != nil {
		return nil, err
	}
	b.run.Step("%s: %d lookups connect", b.name, b.lookups)
	if err := b.growLookups(status.GetLsn()); err != nil {
		return nil, err
	}
	b.Add(b.losses.close)
	if err := b.losses.open(ctx, b.group.Addrs()); err != nil {
		return nil, err
	}
	err = proc.Until(ctx, 500*time.Millisecond, func(context.Context) error {
		now, err := loadgen.Look(b.clients)
		if err == nil && now.Proven != b.lookups {
			err = fmt.Errorf("%d of %d lookups have contact", now.Proven, b.lookups)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if status, err = b.complete(ctx); err != nil {
		return nil, err
	}
	return status, b.owners.Call("Mark", nil, nil)
}

// complete waits until every range has an owner, and returns the state of the namespace.
func (b *outageBed) complete(ctx context.Context) (status *leaseholdv1.NamespaceStatus, err error) {
	err = proc.Until(ctx, 250*time.Millisecond, func(ctx context.Context) error {
		if status, err = b.group.Namespace(ctx, namespace); err != nil {
			return err
		}
		report, err := b.report()
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

func (b *outageBed) report() (out loadgen.Report, err error) {
	err = b.owners.Call("Report", nil, &out)
	return out, err
}

// interrupt kills all managers, starts them again after the outage, and returns the time at which one of them began to lead.
func (b *outageBed) interrupt(ctx context.Context, f *outageFinding) (leads time.Time, err error) {
	var killed sync.WaitGroup
	for _, m := range b.group.All {
		killed.Go(m.Kill)
	}
	killed.Wait()
	b.run.Step("%s: all managers are down", b.name)
	if err := proc.Pause(ctx, b.outage); err != nil {
		return leads, err
	}
	started := time.Now()
	if err := b.group.Start(ctx); err != nil {
		return leads, err
	}
	if b.leader, err = b.group.Leader(ctx); err != nil {
		return leads, err
	}
	status, err := b.group.Status(ctx, b.leader)
	if err != nil {
		return leads, err
	}
	for _, l := range status.GetLeaderships() { // the newest first
		if l.GetLeader() == b.leader.Member.Addr && l.GetTerm() == status.GetTerm() {
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
	for {
		var err error
		if f.after, err = b.report(); err != nil {
			return err
		}
		counts, err := loadgen.Look(b.clients)
		if err != nil {
			return err
		}
		since := time.Since(leads)
		f.contacts = counts.Proven
		if f.contact == 0 && counts.Proven == b.lookups {
			f.contact = since
			b.run.Step("%s: all lookups have contact after %v", b.name, since.Round(time.Millisecond))
		}
		if f.resumed == 0 && f.after.Same == b.size.owners {
			f.resumed = f.after.LastResumed.Sub(leads)
			b.run.Step("%s: all ranges are resumed after %v", b.name, f.resumed.Round(time.Millisecond))
		}
		if since > afterReturn && f.resumed > 0 && f.contact > 0 || since > contactLimit {
			return nil
		}
		if err := proc.Pause(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// conclude compares the end with the time before the outage.
func (b *outageBed) conclude(ctx context.Context, f *outageFinding, before *leaseholdv1.NamespaceStatus) error {
	f.losses, f.restored = int(b.losses.losses.Load()), int(b.losses.restored.Load())
	status, err := b.group.Namespace(ctx, namespace)
	if err != nil {
		return err
	}
	f.waited = status.GetLsn() >= before.GetLsn()+gapLSNs
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

func seconds(d time.Duration) string { return report.Number(d.Seconds()) + " s" }

func addOutage(r *report.Result, f *outageFinding) {
	t := report.NewTable("", "measured from when a manager leads", "")
	t.Add("ranges in the table", f.ranges)
	t.Add("leases suspended during the outage", f.after.Suspended)
	t.Add("leader waits, because it cannot exclude a restored store", f.wait())
	t.Add("every range resumed, under its generation, after", seconds(f.resumed))
	t.Add("all lookups have contact after", seconds(f.contact))
	t.Add("leases granted, revoked or with another generation", fmt.Sprintf("%d, %d, %d owners", f.after.Granted, f.after.Revoked, f.owners-f.after.Same))
	t.Add("losses that lookups report", f.losses)
	r.Add(f.title, fmt.Sprintf("Three managers, %s owners with %s ranges together, and %s lookups. All managers are killed (SIGKILL) and started again after %v; one of them leads %s\n"+
		"after that. Meanwhile every lease has been suspended, and every lookup has lost contact. The owners use the owner library with its own connections,\n"+
		"so that they reconnect as an application's do; they share a process. %d of the lookups use the lookup library and report losses, the others follow the table only. A leader that cannot\n"+
		"exclude a restored store resumes nothing for one lease times drift, %v: after an outage of more than a minute on one computer, and after any outage otherwise.",
		report.Thousands(float64(f.owners)), report.Thousands(float64(f.ranges)), report.Thousands(float64(f.lookups)), f.outage, seconds(f.election),
		libraryLookups, protocol.DefaultTiming().Hold()), t)
	limit := resumeGoal + f.wait()
	const name = "outage of all managers"
	r.Want(name+": a table of 64,000 ranges", float64(f.ranges), "ranges", f.ranges >= 64_000)
	r.Want(fmt.Sprintf("%s: every range resumed within %v of the new leader", name, limit), f.resumed.Seconds(), "s", f.resumed > 0 && f.resumed <= limit)
	r.Want(name+": every lease of every owner is the one before, under its generation", float64(f.after.Same), "owners", f.after.Same == f.owners)
	r.Want(name+": no lease ends", float64(f.after.Revoked), "", f.after.Revoked == 0)
	r.Want(name+": no lookup reports a loss", float64(f.losses), "", f.losses == 0 && f.restored == libraryLookups)
	r.Want(name+": every lookup has contact again", float64(f.contacts), "lookups", f.contacts == f.lookups)
	again := f.after.Suspended - f.ranges
	r.Want(name+": no lease is suspended again after it was resumed", float64(again), "", again == 0)
}
