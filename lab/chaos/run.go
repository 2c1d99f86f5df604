// Package chaos runs real clusters under faults, and checks the records of owners and callers against
// Leasehold's invariants. The simulator checks the state machines; this package checks shells, store, network
// and system. Everything is real except for the links between hosts:
//
//   - lan: hosts, each a network namespace, and a switch between them
//   - actor: the processes that are not managers; history: their records
//   - cluster: all processes of a run, in one of three shapes
//   - nemesis: the faults
//   - check: the invariants
//   - leaks: memory, goroutines and descriptors of processes, which must not grow
//
// A run is a sequence of storms. In a storm faults overlap, and only safety is checked. Then everything
// is healed, and every key must have an owner within the bound of I6. The seed decides the faults, but not
// the scheduling of processes.
//
// A run with a violation leaves a directory with logs, histories, the report, and the command that
// repeats it.
package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
	"github.com/leasehold-dev/leasehold/lab/chaos/nemesis"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// A run is one cluster, from its start to its end.
type run struct {
	cfg      Config
	progress func(Snapshot)
	begin    time.Time
	network  *lan.Network
	cluster  *cluster.Cluster
	book     *check.Book
	vitals   *watch
	deeds    *json.Encoder // to a file
	failed   chan error    // the first process that ended by itself, or error of a history

	mu     sync.Mutex
	report Report
	doing  string
	took   []recovery
}

// Run runs a cluster under faults and reports the result. An error means that the run could not be
// carried out: violations are in the report. Progress is called from one goroutine at a time.
func Run(ctx context.Context, cfg Config, progress func(Snapshot)) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	if err := lan.Available(); err != nil {
		return Report{}, fmt.Errorf("network namespaces are not available: %w", err)
	}
	r := &run{
		cfg: cfg, progress: progress, begin: time.Now(), failed: make(chan error, 1),
		vitals: newWatch(cfg.Soak), book: check.New(history.Keys(history.Watched(cluster.Watched)), cluster.Stale, cfg.Slack),
		report: Report{
			Store: cfg.Shape, Seed: cfg.Seed, Builds: builds(ctx, &cfg), ByKind: make(map[string]int), Violations: []check.Violation{}, Replay: cfg.Replay(),
		},
	}
	stop := r.keepReporting()
	err := r.inDirectory(func() error { return r.whole(ctx) })
	stop()
	return r.report, err
}

// inDirectory creates the directory of the run, and removes it unless there is a reason to keep it.
func (r *run) inDirectory(do func() error) (err error) {
	if r.cfg.Dir == "" {
		r.cfg.Dir, err = os.MkdirTemp("", "leasehold-chaos-")
	} else if r.cfg.Dir, err = filepath.Abs(r.cfg.Dir); err == nil {
		err = os.MkdirAll(r.cfg.Dir, 0o700)
	}
	if err != nil {
		return err
	}
	err = do()
	if err == nil && len(r.report.Violations) == 0 && !r.cfg.Keep {
		return os.RemoveAll(r.cfg.Dir)
	}
	r.report.Kept = r.cfg.Dir
	return errors.Join(err, r.bundle())
}

func (r *run) whole(ctx context.Context) error {
	deeds, err := os.Create(filepath.Join(r.cfg.Dir, "faults.jsonl"))
	if err != nil {
		return err
	}
	defer deeds.Close() //nolint:errcheck // an incomplete file is acceptable
	r.deeds = json.NewEncoder(deeds)
	r.network = lan.New(r.cfg.Seed)
	defer r.network.Close()
	c := r.cfg.Config
	c.Program, c.Network, c.Spare = cmp.Or(r.cfg.Drifting, c.Program), r.network, r.cfg.Soak
	c.Owned, c.Called, c.Failed = r.owned, r.called, r.fail
	if r.cluster, err = cluster.New(c); err != nil {
		return err
	}
	err = r.live(ctx)
	r.cluster.Close()
	err = errors.Join(err, r.blame(r.unread()))
	if r.cfg.Conclude != nil {
		err = errors.Join(err, r.cfg.Conclude(context.WithoutCancel(ctx), r.book))
	}
	r.conclude(ctx)
	if ctx.Err() != nil {
		err = nil // interrupted
	}
	return err
}

func (r *run) live(ctx context.Context) error {
	r.setPhase("starting")
	if err := r.cluster.Start(ctx); err != nil {
		return err
	}
	err := r.healed(ctx, "before the first storm")
	if err == nil {
		err = r.storms(ctx)
	}
	return r.blame(err)
}

// storms runs storms until there were enough.
func (r *run) storms(ctx context.Context) error {
	n := &nemesis.Nemesis{Cluster: r.cluster, Network: r.network, Points: nemesis.Passed(r.cfg.Points, r.cfg.Shape), Notify: r.recordDeed}
	n.CopyAge = r.cfg.setting().Times.CopyAge()
	if nemesis.HasRestores(r.cfg.setting(), r.cfg.Kinds) {
		if err := r.cluster.Backup(); err != nil {
			return err
		}
	}
	for storm := uint64(0); r.goOn(ctx); storm++ {
		random := rand.New(rand.NewPCG(r.cfg.Seed, 1000+storm))
		do := r.storm
		if r.isOutage(storm) {
			do = r.outage
		}
		if err := do(ctx, n, random, storm); err != nil || ctx.Err() != nil {
			return err
		}
		r.vitals.take(ctx, r.cluster)
		r.book.Judge(oracle.Now() - oracle.Time(r.cfg.Slack+settled))
	}
	return r.awaitLosses(ctx)
}

// storm injects many overlapping faults, and waits until all are healed.
func (r *run) storm(ctx context.Context, n *nemesis.Nemesis, random *rand.Rand, storm uint64) error {
	plan := nemesis.Plan(random, r.cfg.setting(), r.strikes(), stormTime, r.cfg.Kinds)
	r.setPhase("breaking")
	if err := n.Storm(ctx, plan); err != nil || ctx.Err() != nil {
		return err
	}
	if r.isOutage(storm + 1) { // which is judged by the guarantees of this build
		if err := r.cluster.Revert(); err != nil {
			return err
		}
	}
	r.count(func(p *Report) { p.Storms++ })
	return r.healed(ctx, fmt.Sprintf("after storm %d", storm+1))
}

// blame converts the error of a process that ended by itself to a violation: the process could start, so the
// cause is the system and not the setup.
func (r *run) blame(err error) error {
	if crash, ok := errors.AsType[cluster.Crash](err); ok {
		r.violated("crash", "a process ended by itself", crash)
		return nil
	}
	return err
}

// violated adds a violation that is not in a history.
func (r *run) violated(invariant, broken string, why error) {
	r.count(func(p *Report) {
		p.Violations = append(p.Violations, check.Violation{Invariant: invariant, Broken: broken, Text: why.Error(), Times: 1})
	})
}

// unread returns an error of a process that wait has not returned yet.
func (r *run) unread() error {
	select {
	case err := <-r.failed:
		return err
	default:
		return nil
	}
}

// awaitLosses waits until callers have received the last losses, or should have, unless there is a violation
// already.
func (r *run) awaitLosses(ctx context.Context) error {
	r.setPhase("waiting for the last losses")
	for until := time.Now().Add(lossTime + r.cfg.Slack); ; {
		err := r.wait(ctx, 100*time.Millisecond)
		if err != nil || !r.cfg.Beyond && r.book.Broken() || r.book.PendingLosses() == 0 || time.Now().After(until) {
			return err
		}
	}
}

// settled is the time after which callers have received and recorded everything.
const settled = time.Minute

// strikes is the number of faults of the next storm.
func (r *run) strikes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.cfg.Faults - r.report.Faults; r.cfg.Faults > 0 && left < perStorm {
		return left
	}
	return perStorm
}

func (r *run) goOn(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ctx.Err() == nil && (r.cfg.Beyond || !r.book.Broken()) &&
		(r.cfg.For == 0 || time.Since(r.begin) < r.cfg.For) && (r.cfg.Faults == 0 || r.report.Faults < r.cfg.Faults)
}

// patience limits the time until every key has an owner, before the run is aborted.
const patience = time.Minute

// healed waits until every key has an owner for good and all callers find the owners, and judges the duration
// of the former. A key that is held when every earlier lease has expired was renewed since.
func (r *run) healed(ctx context.Context, when string) error {
	r.setPhase("recovering")
	since := oracle.Now()
	store, stop := r.storeBack(ctx)
	defer stop()
	blank := r.cluster.Blank()
	bound := r.cfg.bound(!r.cfg.Shape.Stored() && 2*blank > len(r.cluster.Managers))
	missing, err := r.cluster.Create(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && r.report.Storms == 0:
		return fmt.Errorf("%s: %w", when, err) // the setup is wrong
	case err != nil:
		r.book.Unrecovered(time.Duration(oracle.Now()-since), bound+r.cfg.Slack, cluster.Watched)
		r.violated("I6", "no leader", fmt.Errorf("%s: %w", when, err))
		return nil
	case missing:
		since = oracle.Now() // nothing could be owned before
		r.created(when, blank)
	}
	for {
		slowest, without := r.book.Recovery(since, since+oracle.Time(stretch(r.cfg.Lease)))
		unanswered := r.book.Unanswered(since, history.Watched(cluster.Registers))
		took := time.Duration(oracle.Now() - since)
		switch {
		case without == 0 && unanswered == 0:
			r.recovered(slowest, bound, store())
			return nil
		case took > max(bound+r.cfg.Slack, patience):
			if without > 0 {
				r.book.Unrecovered(took, bound+r.cfg.Slack, without)
			} else {
				r.recovered(slowest, bound, store())
				r.book.Lost(took, unanswered)
			}
			return nil
		}
		if err := r.wait(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%s: %w", when, err)
		}
	}
}

// created records that the namespace had to be created. That is correct only if all managers were down at the
// same time and have no store, or most of them in servers, which create it again.
func (r *run) created(when string, blank int) {
	r.count(func(p *Report) { p.Created++ })
	lost := r.cfg.Shape == cluster.Flease && blank == len(r.cluster.Managers) || r.cfg.Shape == cluster.Embedded && 2*blank >= len(r.cluster.Managers)
	if !lost {
		r.book.Vanished(when, blank)
	}
}

// storeBack waits in the background until the store works. Took ends that and returns its duration.
func (r *run) storeBack(ctx context.Context) (took func() time.Duration, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	began, back := time.Now(), make(chan time.Duration, 1)
	go func() {
		for ctx.Err() == nil && !r.cluster.StoreWorks(ctx) {
			proc.Pause(ctx, 50*time.Millisecond)
		}
		back <- time.Since(began)
	}()
	took = sync.OnceValue(func() time.Duration { cancel(); return <-back })
	return took, func() { took() }
}

func (r *run) recovered(took, bound, store time.Duration) {
	if r.report.Storms > 0 {
		r.took = append(r.took, recovery{storm: r.report.Storms, took: took, bound: bound, store: store})
		if took > bound+r.cfg.Slack {
			r.book.Unrecovered(took, bound+r.cfg.Slack, 0)
		}
	}
}

// wait waits, unless a process ends by itself or the context ends.
func (r *run) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case err := <-r.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// conclude judges the records that were not judged during the run.
func (r *run) conclude(ctx context.Context) {
	r.report.Seconds = time.Since(r.begin).Seconds()
	r.report.Recoveries = recoveries(r.took, &r.cfg)
	r.report.RevivedBy, r.report.Unbounded = r.cluster.Revived(), r.cluster.Unbounded
	for _, n := range r.report.RevivedBy {
		r.report.Revived += n
	}
	r.report.Packets = r.network.Counts()
	r.report.Interrupted = ctx.Err() != nil
	r.setPhase("judging")
	found, n := r.book.Violations()
	r.report.Violations = append(append(r.report.Violations, r.excuse(found)...), r.vitals.judge(&r.report)...)
	r.notice()
	r.report.Checked = n
}

// fail ends the run with the first error: of a process that ended by itself, or of a history.
func (r *run) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// recordDeed records a fault.
func (r *run) recordDeed(d nemesis.Deed) {
	if !d.Healed && d.Victims != "" {
		now := oracle.Now() // it has begun
		for _, caller := range r.silenced(&d) {
			r.book.Cut(caller, now, now+oracle.Time(d.For))
		}
	}
	r.count(func(p *Report) {
		switch {
		case d.Victims == "":
			p.Missed++
		case !d.Healed:
			p.Faults++
			p.ByKind[d.Kind]++
		}
		_ = r.deeds.Encode(struct {
			Time oracle.Time `json:"time"`
			nemesis.Deed
		}{oracle.Now(), d}) // other writes report a full disk
	})
	r.setPhase("breaking")
}

func (r *run) count(do func(*Report)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do(&r.report)
}
