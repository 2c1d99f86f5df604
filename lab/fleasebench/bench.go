// Package fleasebench measures the leases per second of a Flease group. Each member is a process, and they
// communicate over the loopback interface. Members that share one process and its scheduler lose packets, and
// are slower by an order of magnitude.
package fleasebench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
)

// Config configures a benchmark.
type Config struct {
	Members   int           `json:"members"`
	Proposers int           `json:"proposers"` // number of members that acquire leases
	Leases    int           `json:"leases"`    // per batch and proposer
	Batches   int           `json:"batches"`
	Lease     time.Duration `json:"-"`
	Sealed    bool          `json:"sealed"`
	TCP       bool          `json:"tcp"`
}

// A Report is the result.
type Report struct {
	Config
	LeasesPerSecond float64 `json:"leasesPerSecond"`
	BatchMillisP50  float64 `json:"batchMillisP50"`
	BatchMillisMax  float64 `json:"batchMillisMax"`
	Seconds         float64 `json:"seconds"`                     // of acquiring
	CPUMicros       float64 `json:"cpuMicrosPerLease,omitempty"` // of all members, per lease
}

// Validate sets the default of Proposers, and returns an error for invalid values.
func (c *Config) Validate() error {
	if c.Proposers == 0 {
		c.Proposers = c.Members
	}
	if c.Leases < 1 || c.Leases > 1_000_000 || c.Batches < 1 || c.Members < 1 || c.Members > 9 || c.Proposers > c.Members || c.Proposers < 0 {
		return errors.New("want 1 to 1000000 leases, at least one batch, 1 to 9 members, and at most as many proposers as members")
	}
	return nil
}

// Run runs the benchmark. Each member is this program with the arguments of role, which must run
// [StartMember].
func Run(ctx context.Context, cfg Config, role string) (Report, error) {
	g, err := Start(ctx, role, cfg.Members, MemberConfig{
		Lease: cfg.Lease, Epsilon: 100 * time.Millisecond, Sealed: cfg.Sealed, TCP: cfg.TCP,
		GCPercent: 400, // the members share the processors of one computer
	})
	if err != nil {
		return Report{}, err
	}
	defer g.Close()
	var took []time.Duration
	var sum, used time.Duration
	leases := 0.0
	for i := range cfg.Batches {
		b, cpu, err := batch(g, cfg, fmt.Sprintf("b%d", i+1))
		if err != nil {
			return Report{}, err
		}
		took = append(took, b.Took())
		sum += b.Took()
		used += cpu
		leases += float64(b.Leases)
	}
	slices.Sort(took)
	return Report{
		Config: cfg, Seconds: sum.Seconds(), LeasesPerSecond: leases / sum.Seconds(), CPUMicros: used.Seconds() * 1e6 / leases,
		BatchMillisP50: millis(took[len(took)/2]), BatchMillisMax: millis(took[len(took)-1]),
	}, nil
}

// batch acquires and releases a batch, and returns the CPU time of all members for the acquisition.
func batch(g proc.Group, cfg Config, name string) (Batch, time.Duration, error) {
	proposers := g[:cfg.Proposers]
	if err := Prepare(proposers, Order{Batch: cfg.Leases, Name: name}); err != nil {
		return Batch{}, 0, err
	}
	before, err := g.CPU()
	if err != nil {
		return Batch{}, 0, err
	}
	b, err := Acquire(proposers)
	if err != nil {
		return Batch{}, 0, err
	}
	after, err := g.CPU()
	if err != nil {
		return Batch{}, 0, err
	}
	return b, after - before, Release(proposers)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
