// Command scale asks what a manager costs that has many owners and lookups, and
// how that grows: on the testbeds of the two papers, and with five and
// twenty-five times as many.
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

const about = "What does the leader cost that serves many owners and lookups, and how does that grow? A real manager process with its store embedded, on the\n" +
	"disk, a process that is all owners and one that is all lookups: the real protocol, with the library's own machine in each owner, but without\n" +
	"its goroutines and tables. Leases last 10 s and are renewed every 2.5 s (the papers' last 60 s and are renewed every 15 s), and each lookup\n" +
	"asks every 5 s. First the testbeds of [Centrifuge](https://www.usenix.org/conference/nsdi10) (200 owners, 2,016 lookups; in production 130 and\n" +
	"1,000, with three managers) and PRS (500 owners, 2,000 frontends), then 1,000 owners with 10,000 lookups, also with leases and questions as rare as the papers' (every 15 s and every 30 s) and\n" +
	"with three managers, which are also all killed for a minute, and 5,000 with 50,000, whose table has 50,000 ranges first and then 5,000. All clients, those of bare gRPC too, speak on a beat, as the library's do; here the beats are of one\n" +
	"wall clock, and those of many hosts are as close as their clocks are. Processor time and memory are the process's own, and\n" +
	"bytes are counted by the clients, in both directions, without what TCP adds. What the papers measured stands in figures of which their text\n" +
	"says little: only numbers that it names are repeated here, and marked."

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
	ownerManagers := slices.DeleteFunc(sizes(r.Quick && !r.Only), func(s size) bool { return !r.Wants(s.name) })
	steps := 0
	for _, s := range ownerManagers {
		steps += s.progress(r.Rounds)
	}
	r.Expect(steps)
	var (
		found  []*finding
		outage *outageFinding
	)
	for _, s := range ownerManagers {
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
			r.Note("%s is not whole in the end: %v", s.title, f.wrong)
		}
		found = append(found, f)
	}
	conclude(r.Result, found)
	if outage != nil {
		addOutage(r.Result, outage)
	}
	return nil
}

// A size is how many there are, and what happens to them.
type size struct {
	name            string
	title           string
	owners, lookups int
	together        int // lookups that share a connection
	managers        int // 0 is 1; lookups follow the standbys if there are any
	grow            time.Duration
	steps           int // in which it grows to that, each of which is measured; 0 is 1
	// restarts is within how long owners are restarted, and then lookups; or, if both is
	// set, all at once. 0: none are.
	restarts time.Duration
	both     bool
	// rollout: managers are restarted as well, one after another, each with its share of the
	// others.
	rollout bool
	// sparse: each owner has one range. Such a table is only restarted: of the quiet, those of the policy that is the
	// default tell more.
	sparse bool
	// floor: a server that does nothing but answer is measured beside it.
	floor bool
	// patient: leases and proofs last as long as the papers', and not as ours do by default.
	patient bool
	// failures is how long nodes fail for, at each step; 0: none do.
	failures time.Duration
	// virtualNodes: owners have so many ranges each, by consistent hashing; 0: the default policy.
	virtualNodes uint32
	// outage is for how long all managers are down. Such a size is measured as outage.go says.
	outage time.Duration
}

func (s size) clients() int { return s.owners + s.lookups }

// served are those who speak to the leader.
func (s size) leaderClients() int {
	switch {
	case s.rollout: // lookups are with all of them alike
		return s.owners + s.lookups/s.managers + s.managers - 1
	case s.managers > 1:
		return s.owners + s.managers - 1
	}
	return s.clients()
}

func (s size) connections() int { return s.owners + (s.lookups+s.together-1)/s.together }

// Of Centrifuge's lookups: how often they ask.
const patientPoll = 30 * time.Second

// windows are how many of how long are measured while nothing happens: long enough for
// all owners to renew, and nearly for all lookups to poll. There is no time for many if they
// are patient.
func (s size) windows(rounds int) (int, time.Duration) {
	switch {
	case s.sparse || s.lookups == 0:
		return 0, time.Second
	case s.patient:
		return min(rounds, 2), patientPoll
	}
	return rounds, 4 * time.Second
}

// progress is how many steps are reported.
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

// poll is how often lookups ask; 0 is the default.
func (s size) poll() time.Duration {
	if s.patient {
		return patientPoll
	}
	return 0
}

// timing is that of leases; nil is the default.
func (s size) timing() *leaseholdv1.Timing {
	if !s.patient {
		return nil
	}
	t := protocol.PaperTiming()
	return &leaseholdv1.Timing{Lease: int64(t.Lease), Renew: int64(t.Renew), Drift: float64(t.Drift)}
}

func (s size) config() *leaseholdv1.NamespaceConfig {
	// Twice as many: one that is restarted may be there before the one before is gone.
	c := &leaseholdv1.NamespaceConfig{Name: namespace, MaxOwners: uint32(2*s.owners + 64), Timing: s.timing()}
	if s.virtualNodes > 0 {
		c.Policy, c.VirtualNodes = "consistent", s.virtualNodes
	}
	return c
}

// lifetime is how long a node lives in PRS's experiment, and compressed is how
// many times faster our nodes fail.
const (
	lifetime   = 8 * time.Hour
	compressed = 12
)

// How long Centrifuge's experiments took, and a rollout from the first leader's restart until
// the last took over.
const (
	paperRestarts = 32 * time.Minute
	paperRollout  = time.Hour
)

// sizes are asked in this order. A process may open 20,000 files on many systems,
// and a manager takes 16,384 connections: with 50,000 lookups, five share one.
func sizes(quick bool) []size {
	production := size{name: "rollout", title: "Centrifuge's production", owners: 130, lookups: 1000, together: 1, managers: 3, grow: 4 * time.Second, restarts: 60 * time.Second, rollout: true}
	if quick {
		production.restarts = 0 // in seconds, they would be a stampede, and no rollout
		return []size{production}
	}
	return []size{
		production,
		// Neighbouring ranges of one owner are one. With 65 virtual nodes there are at least 64,000 all the same.
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
		// Here the table has 50,000 ranges. To restart all, more than 100 GB of tables and changes would have to come through.
		{name: "25x", title: "25 times, with the papers' times", owners: 5000, lookups: 50_000, together: 5, grow: 2 * time.Minute, patient: true},
		{
			name: "25x-sparse", title: "25 times, the same with a range for each owner", owners: 5000, lookups: 50_000, together: 5, grow: time.Minute,
			patient: true, sparse: true, virtualNodes: 1, restarts: 180 * time.Second, both: true,
		},
	}
}
