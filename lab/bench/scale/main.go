// Command scale measures the costs of a manager with many owners and lookups, and how
// they grow: on the testbeds of the two papers, and with five and twenty-five times as
// many.
//
//	cd lab/bench && go run ./scale                          all of it, in some 23 minutes
//	cd lab/bench && go run ./scale -quick                   the smallest, in half a minute
//	cd lab/bench && go run ./scale -only outage             all managers down for a minute, in three
package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const about = "The cost of a leader with many owners and lookups, and its growth. One manager process with an embedded store on disk, one process\n" +
	"with all owners and one with all lookups run the real protocol; owners use the library's machine without its goroutines and\n" +
	"tables. Leases last 10 s and are renewed every 2.5 s (60 s and 15 s in the papers); lookups poll every 5 s. First the testbeds of\n" +
	"[Centrifuge](https://www.usenix.org/conference/nsdi10) (200 owners, 2,016 lookups; production 130 and 1,000 with three managers)\n" +
	"and PRS (500 owners, 2,000 frontends). Then 1,000 owners with 10,000 lookups, also with the papers' intervals (renewals every 15\n" +
	"s, polls every 30 s) and with three managers, which are also all killed for a minute; then 5,000 with 50,000, with 50,000 and with\n" +
	"5,000 ranges. All clients send on common beats of one wall clock. CPU and memory are those of the process; bytes are counted at\n" +
	"the clients in both directions, without TCP headers. Of the papers' results only numbers in their text are cited."

func main() {
	roles := loadgen.Roles()
	roles[roleEcho] = proc.RoleOf(startEcho)
	proc.Play(roles)
	var names []string
	for _, s := range sizes(false) {
		names = append(names, s.name)
	}
	report.Main(report.Benchmark{
		Name: "scale", Number: 3, Title: "Manager at scale", About: about, Rounds: 5, Quick: 2,
		Modules: []string{"google.golang.org/grpc", "go.etcd.io/etcd/server/v3"},
		Parts:   names, QuickPart: "rollout", Run: run,
	})
}

func run(ctx context.Context, r *report.Run) error {
	wanted := slices.DeleteFunc(sizes(r.Quick && !r.Only), func(s size) bool { return !r.Wants(s.name) })
	steps := 0
	for _, s := range wanted {
		steps += s.progress(r.Rounds)
	}
	r.Expect(steps)
	var (
		found  []*finding
		outage *outageFinding
	)
	for _, s := range wanted {
		if s.outage > 0 {
			var err error
			if outage, err = measureOutage(ctx, r, s); err != nil {
				return fmt.Errorf("%s: %w", s.title, err)
			}
			continue
		}
		f, err := measure(ctx, r, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		if f.wrong != nil {
			r.Note("%s: not all keys are held at the end: %v", s.title, f.wrong)
		}
		found = append(found, f)
	}
	conclude(r.Result, found)
	if outage != nil {
		addOutage(r.Result, outage)
	}
	return nil
}

// A size is the numbers of managers, owners and lookups, and what happens to them.
type size struct {
	name            string
	title           string
	owners, lookups int
	together        int // lookups that share a connection
	managers        int // 0: 1; lookups follow the standbys if there are any
	grow            time.Duration
	steps           int // number of steps in which it grows, each of which is measured; 0: 1
	// restarts is the period in which all owners are restarted, and then all lookups, or
	// both at once if both is set. 0: none are restarted.
	restarts time.Duration
	both     bool
	// rollout: managers are restarted as well, one after another, each with its share of
	// the clients.
	rollout bool
	// sparse: each owner has one range. Only restarts are measured with it; quiet periods
	// are measured with the default policy.
	sparse bool
	// floor: a server that does nothing but answer is measured for comparison.
	floor bool
	// patient: leases and proofs last as long as the papers', not as long as the defaults.
	patient bool
	// failures is the period in which nodes fail, at each step; 0: no failures.
	failures time.Duration
	// virtualNodes is the number of ranges of each owner with consistent hashing; 0: the
	// default policy.
	virtualNodes uint32
	// outage is how long all managers are down; see outage.go for the measurement.
	outage time.Duration
}

func (s size) clients() int { return s.owners + s.lookups }

// leaderClients returns the number of clients of the leader.
func (s size) leaderClients() int {
	switch {
	case s.rollout: // lookups are spread over all managers
		return s.owners + s.lookups/s.managers + s.managers - 1
	case s.managers > 1:
		return s.owners + s.managers - 1
	}
	return s.clients()
}

func (s size) connections() int { return s.owners + (s.lookups+s.together-1)/s.together }

// patientPoll is the poll interval of Centrifuge's lookups.
const patientPoll = 30 * time.Second

// windows returns the number and length of the quiet windows to measure. A window is long
// enough for all owners to renew, and for almost all lookups to poll. With the papers'
// times there is not enough time for many windows.
func (s size) windows(rounds int) (int, time.Duration) {
	switch {
	case s.sparse || s.lookups == 0:
		return 0, time.Second
	case s.patient:
		return min(rounds, 2), patientPoll
	}
	return rounds, 4 * time.Second
}

// progress returns the number of reported steps.
func (s size) progress(rounds int) int {
	if s.outage > 0 {
		return outageSteps
	}
	windows, _ := s.windows(rounds)
	steps := s.steps + windows + 2
	if s.floor {
		steps++
	}
	switch {
	case s.rollout && s.restarts > 0:
		steps += s.managers
	case s.both:
		steps++
	case s.restarts > 0:
		steps += 2
	}
	return steps
}

// poll returns the interval at which lookups poll; 0: the default.
func (s size) poll() time.Duration {
	if s.patient {
		return patientPoll
	}
	return 0
}

// timing returns the timing of leases; nil: the default.
func (s size) timing() *leaseholdv1.Timing {
	if !s.patient {
		return nil
	}
	t := protocol.PaperTiming()
	return &leaseholdv1.Timing{Lease: int64(t.Lease), Renew: int64(t.Renew), Drift: float64(t.Drift)}
}

func (s size) config() *leaseholdv1.NamespaceConfig {
	// Twice as many owners, because a restarted one may join before its predecessor is gone.
	c := &leaseholdv1.NamespaceConfig{Name: namespace, MaxOwners: uint32(2*s.owners + 64), Timing: s.timing()}
	if s.virtualNodes > 0 {
		c.Policy, c.VirtualNodes = "consistent", s.virtualNodes
	}
	return c
}

// lifetime is the mean lifetime of a node in PRS's experiment, and compressed is the
// factor by which nodes fail more often here.
const (
	lifetime   = 8 * time.Hour
	compressed = 12
)

// The durations of Centrifuge's experiments, and of a rollout from the first leader's
// restart until the last takeover.
const (
	paperRestarts = 32 * time.Minute
	paperRollout  = time.Hour
)

// sizes returns the sizes in the order of measurement. A process may open 20,000 files on
// many systems, and a manager accepts 16,384 connections: with 50,000 lookups, five share
// one.
func sizes(quick bool) []size {
	production := size{name: "rollout", title: "Centrifuge's production", owners: 130, lookups: 1000, together: 1, managers: 3, grow: 4 * time.Second, restarts: 60 * time.Second, rollout: true}
	if quick {
		production.restarts = 0 // restarts within seconds would not be like a rollout
		return []size{production}
	}
	return []size{
		production,
		// Neighbouring ranges of one owner are merged. With 65 virtual nodes at least 64,000 remain.
		{
			name: "outage", title: "All managers down for a minute", owners: 1000, lookups: 10_000, together: 1, managers: 3, grow: 40 * time.Second,
			virtualNodes: 65, outage: time.Minute,
		},
		{name: "centrifuge", title: "Centrifuge's testbed", owners: 200, lookups: 2016, together: 1, grow: 4 * time.Second, restarts: 32 * time.Second},
		{name: "prs", title: "PRS's testbed", owners: 500, lookups: 2000, together: 1, grow: 2 * time.Second, steps: 5, failures: 6 * time.Second},
		{name: "joins", title: "1,000 owners join within a second", owners: 1000, together: 1, grow: 2 * time.Second},
		{name: "5x", title: "5 times", owners: 1000, lookups: 10_000, together: 1, grow: 30 * time.Second, restarts: 180 * time.Second, both: true, floor: true},
		{name: "patient", title: "5 times, with the papers' times", owners: 1000, lookups: 10_000, together: 1, grow: 20 * time.Second, patient: true},
		{name: "group", title: "5 times, with three managers", owners: 1000, lookups: 10_000, together: 1, managers: 3, grow: 20 * time.Second},
		// The table has 50,000 ranges. Restarting all would transfer more than 100 GB of tables and changes.
		{name: "25x", title: "25 times, with the papers' times", owners: 5000, lookups: 50_000, together: 5, grow: 2 * time.Minute, patient: true},
		{
			name: "25x-sparse", title: "25 times, the same with a range for each owner", owners: 5000, lookups: 50_000, together: 5, grow: time.Minute,
			patient: true, sparse: true, virtualNodes: 1, restarts: 180 * time.Second, both: true,
		},
	}
}
