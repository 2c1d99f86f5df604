// Package fleasebench measures how many leases in a second a Flease group agrees
// upon. Each member is a process, and they speak over the loopback. Members that share
// one process and its scheduler lose packets, and are slower by an order of magnitude.
package fleasebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/server/proc"
)

// Config is what is measured.
type Config struct {
	Members   int           `json:"members"`
	Proposers int           `json:"proposers"` // so many of the members acquire leases
	Leases    int           `json:"leases"`    // of a batch and a proposer
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
	CPUMicros       float64 `json:"cpuMicrosPerLease,omitempty"` // of all members together, for a lease
}

// Validate fills in the default for Proposers.
func (c *Config) Validate() error {
	if c.Proposers == 0 {
		c.Proposers = c.Members
	}
	if c.Leases < 1 || c.Leases > 1_000_000 || c.Batches < 1 || c.Members < 1 || c.Members > 9 || c.Proposers > c.Members || c.Proposers < 0 {
		return errors.New("want 1 to 1000000 leases, a batch at least, 1 to 9 members, and no more proposers than members")
	}
	return nil
}

// Run measures. Each member is a process that the command starts, which must call
// [RunMember]; errs is its standard error.
func Run(ctx context.Context, cfg Config, command []string, errs io.Writer) (Report, error) {
	g, err := start(ctx, &cfg, command, errs)
	defer g.stop()
	if err != nil {
		return Report{}, err
	}
	if _, err := g.await(); err != nil { // all are ready
		return Report{}, err
	}
	var took []time.Duration
	var sum, used time.Duration
	proposers := g[:cfg.Proposers]
	for range cfg.Batches {
		before, err := g.order(measureCPU)
		if err != nil {
			return Report{}, err
		}
		began := time.Now()
		if _, err := proposers.order(acquire); err != nil {
			return Report{}, err
		}
		took = append(took, time.Since(began))
		sum += took[len(took)-1]
		after, err := g.order(measureCPU)
		if err != nil {
			return Report{}, err
		}
		used += after - before
		if _, err := proposers.order(release); err != nil {
			return Report{}, err
		}
	}
	slices.Sort(took)
	leases := float64(cfg.Proposers * cfg.Leases * cfg.Batches)
	return Report{
		Config: cfg, Seconds: sum.Seconds(), LeasesPerSecond: leases / sum.Seconds(), CPUMicros: used.Seconds() * 1e6 / leases,
		BatchMillisP50: millis(took[len(took)/2]), BatchMillisMax: millis(took[len(took)-1]),
	}, nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// A process is a member, as its parent sees it.
type process struct {
	command *exec.Cmd
	input   io.Closer
	orders  *json.Encoder
	answers *json.Decoder
}

type group []*process

// start starts the members. Those that were started are returned with an error, too.
func start(ctx context.Context, cfg *Config, command []string, errs io.Writer) (group, error) {
	addrs, err := proc.FreePorts(cfg.Members)
	if err != nil {
		return nil, err
	}
	setup := setup{Leases: cfg.Leases, Lease: cfg.Lease, Sealed: cfg.Sealed, TCP: cfg.TCP}
	for i, addr := range addrs {
		setup.Members = append(setup.Members, flease.Member{ID: flease.ID(i + 1), Addr: addr})
	}
	var g group
	for _, m := range setup.Members {
		p := &process{command: exec.CommandContext(ctx, command[0], command[1:]...)}
		p.command.Stderr = errs
		out, err := p.command.StdoutPipe()
		if err != nil {
			return g, err
		}
		in, err := p.command.StdinPipe()
		if err != nil {
			return g, err
		}
		p.input, p.orders, p.answers = in, json.NewEncoder(in), json.NewDecoder(out)
		if err := p.command.Start(); err != nil {
			return g, err
		}
		g = append(g, p)
		setup.Self = m.ID
		if err := p.orders.Encode(setup); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (g group) stop() {
	for _, p := range g {
		_ = p.input.Close() // then it ends
	}
	for _, p := range g {
		_ = p.command.Wait() // its answers have said what matters
	}
}

// order sends an order to all, and waits until all have carried it out.
func (g group) order(what order) (used time.Duration, _ error) {
	for _, p := range g {
		if err := p.orders.Encode(what); err != nil {
			return 0, fmt.Errorf("a member has ended: %w", err)
		}
	}
	return g.await()
}

// await waits for an answer of each. It returns the CPU time that they have used so
// far, all together.
func (g group) await() (used time.Duration, _ error) {
	for _, p := range g {
		var a answer
		if err := p.answers.Decode(&a); err != nil {
			return 0, fmt.Errorf("a member has ended: %w", err)
		}
		if a.Error != "" {
			return 0, fmt.Errorf("a member says: %q", a.Error)
		}
		used += a.CPU
	}
	return used, nil
}
