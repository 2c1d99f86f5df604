// Package scale measures the costs of a manager with many owners and lookups: those of
// Centrifuge's production, and 1,000 owners with 10,000 lookups, also during an outage of all
// managers.
package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/managers"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const about = "The cost of a leader with many owners and lookups. Managers are processes with embedded stores on disk; one process with all\n" +
	"owners and one with all lookups run the real protocol; owners use the library's machine without its goroutines and tables. Leases\n" +
	"last 10 s and are renewed every 2.5 s (60 s and 15 s in the papers); lookups poll every 5 s. First the size of\n" +
	"[Centrifuge](https://www.usenix.org/conference/nsdi10)'s production (130 owners, 1,000 lookups, three managers), then 1,000 owners\n" +
	"with 10,000 lookups, with one manager and with three, which are also all killed for a minute. With three managers, lookups follow\n" +
	"the standbys. All clients send on common beats of one wall clock. CPU and memory are those of the process; bytes are counted at the\n" +
	"clients in both directions, without TCP headers. Of the paper's results only numbers in its text are cited."

// New returns the benchmark.
func New() *report.Benchmark {
	b := &report.Benchmark{
		Name: "scale", Number: 3, Title: "Manager at scale", About: about,
		QuickPart: partProduction,
		Rounds:    5, Quick: 2, Seconds: 780, QuickSeconds: 25, Run: run,
	}
	for _, s := range sizes() {
		if s.soak != "" {
			b.Long = append(b.Long, s.name)
			continue
		}
		b.Parts = append(b.Parts, s.name)
	}
	return b
}

// Roles returns the roles of the processes, for [proc.Play].
func Roles() map[string]proc.Role { return loadgen.Roles() }

func run(ctx context.Context, r *report.Run) error {
	var found []*finding
	for _, s := range sizes() {
		if !r.Wants(s.name) || s.outage > 0 || s.soak != "" {
			continue
		}
		f, err := measure(ctx, r, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		found = append(found, f)
	}
	if len(found) > 0 {
		conclude(r.Result, found)
	}
	for _, s := range sizes() {
		if err := runLong(ctx, r, s); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
	}
	return nil
}

// runLong runs an outage or a soak.
func runLong(ctx context.Context, r *report.Run, s size) error {
	switch {
	case !r.Wants(s.name):
	case s.outage > 0:
		f, err := measureOutage(ctx, r, s)
		if err != nil {
			return err
		}
		addOutage(r.Result, f)
	case s.soak != "":
		f, err := measureSoak(ctx, r, s)
		if err != nil {
			return err
		}
		addSoak(r.Result, f)
	}
	return nil
}

// A size is the numbers of managers, owners and lookups, and what happens to them.
type size struct {
	name            string
	title           string
	managers        int
	owners, lookups int
	grow            time.Duration
	restarts        time.Duration // the period in which all clients are restarted; 0: they are not
	// virtualNodes is the number of ranges of each owner with consistent hashing; 0: the
	// default policy.
	virtualNodes uint32
	outage       time.Duration // how long all managers are down
	soak         string        // the preset of a soak, for a minute per round
}

const (
	partProduction = "production"
	partSingle     = "5x"
	partGroup      = "group"
)

// sizes returns the sizes in the order of measurement.
func sizes() []size {
	const owners, lookups = 1000, 10_000
	return []size{
		{name: partProduction, title: "Centrifuge's production", managers: 3, owners: 130, lookups: 1000, grow: 4 * time.Second},
		{name: partSingle, title: "5 times", managers: 1, owners: owners, lookups: lookups, grow: 30 * time.Second, restarts: 4 * time.Minute},
		{name: partGroup, title: "5 times, with three managers", managers: 3, owners: owners, lookups: lookups, grow: 20 * time.Second},
		// Neighbouring ranges of one owner are merged. With 65 virtual nodes at least 64,000 remain.
		{
			name: "outage", title: "All managers down for a minute", managers: 3, owners: owners, lookups: lookups, grow: 40 * time.Second,
			virtualNodes: 65, outage: time.Minute,
		},
		{name: "fast", title: "Soak", managers: 3, owners: owners, lookups: 1000, grow: 20 * time.Second, soak: "fast"},
	}
}

// leaderClients returns the number of clients of the leader.
func (s size) leaderClients() int {
	if s.managers > 1 { // lookups follow the standbys, which follow the leader
		return s.owners + s.managers - 1
	}
	return s.owners + s.lookups
}

func (s size) config() *leaseholdv1.NamespaceConfig {
	// Twice as many owners, because a restarted one may join before its predecessor is gone.
	c := &leaseholdv1.NamespaceConfig{Name: namespace, MaxOwners: uint32(2*s.owners + 64)}
	if s.virtualNodes > 0 {
		c.Policy, c.VirtualNodes = "consistent", s.virtualNodes
	}
	if s.soak != "" {
		c.Timing = managers.Preset(s.soak)
	}
	return c
}
