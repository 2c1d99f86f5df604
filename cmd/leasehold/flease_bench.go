package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const fleaseBenchHelp = `Measures how many leases in a second a group can agree upon, on this computer: each
member is a process of its own, and they speak over the loopback. Members acquire
resources that nobody has heard of before, in batches, all at the same time, and
release them; only the acquiring counts. A batch begins when all members have
finished the one before.

With --proposers 1 one member acquires, and the others only agree.`

type fleaseBench struct {
	Members   int           `json:"members"`
	Proposers int           `json:"proposers"`
	Leases    int           `json:"leases"` // of a batch and a proposer
	Batches   int           `json:"batches"`
	Lease     time.Duration `json:"-"`
	Sealed    bool          `json:"sealed"`
	TCP       bool          `json:"tcp"`
	json      bool
}

// A fleaseBenchReport is what came of it.
type fleaseBenchReport struct {
	fleaseBench
	LeasesPerSecond float64 `json:"leasesPerSecond"`
	BatchMillisP50  float64 `json:"batchMillisP50"`
	BatchMillisMax  float64 `json:"batchMillisMax"`
	Seconds         float64 `json:"seconds"`                     // of acquiring
	CPUMicros       float64 `json:"cpuMicrosPerLease,omitempty"` // of all members together, for a lease
}

func newFleaseBenchCommand() *cobra.Command {
	o := &fleaseBench{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how many leases in a second a group agrees upon",
		Long:  fleaseBenchHelp,
		Args:  noArguments,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&o.Leases, "leases", 10000, "how many leases a batch of one member has")
	flags.IntVar(&o.Batches, "batches", 20, "how many batches")
	flags.IntVar(&o.Members, "members", 3, "how many members")
	flags.IntVar(&o.Proposers, "proposers", 0, "how many of them acquire (default all)")
	flags.DurationVar(&o.Lease, "lease", 5*time.Second, "how long leases last; members wait a little longer than that before they begin")
	flags.BoolVar(&o.Sealed, "sealed", false, "use a key: encrypt and authenticate packets")
	flags.BoolVar(&o.TCP, "tcp", false, "connections instead of datagrams")
	flags.BoolVar(&o.json, "json", false, "print JSON, and nothing else")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Proposers == 0 {
			o.Proposers = o.Members
		}
		if o.Leases < 1 || o.Leases > 1_000_000 || o.Batches < 1 || o.Members < 1 || o.Members > 9 || o.Proposers > o.Members || o.Proposers < 0 {
			return errors.New("want 1 to 1000000 leases, a batch at least, 1 to 9 members, and no more proposers than members")
		}
		report, err := o.run(cmd.Context(), cmd.ErrOrStderr())
		if err != nil {
			return failed{err}
		}
		out := newScreen(cmd.OutOrStdout())
		if o.json {
			return write(out, jsonText(report))
		}
		return write(out, report.text())
	}
	return cmd
}

func (r *fleaseBenchReport) text() string {
	return facts([]entry{
		{"members", fmt.Sprintf("%d, of which %d acquire", r.Members, r.Proposers)},
		{"batches", fmt.Sprintf("%d of %d leases each", r.Batches, r.Leases)},
		{"a batch takes", fmt.Sprintf("%.1f ms, %.1f ms at most", r.BatchMillisP50, r.BatchMillisMax)},
		{"a lease takes", fmt.Sprintf("%.2f us of CPU, of all members together", r.CPUMicros)},
		{"leases per second", heading(fmt.Sprintf("%.0f", r.LeasesPerSecond))},
	})
}

// run starts the members and gives them their orders.
func (o *fleaseBench) run(ctx context.Context, errs io.Writer) (fleaseBenchReport, error) {
	report := fleaseBenchReport{fleaseBench: *o}
	members, err := o.start(ctx, errs)
	defer func() {
		for _, m := range members {
			_ = m.orders.Close() // then it ends
		}
		for _, m := range members {
			_ = m.command.Wait() // what matters it has said
		}
	}()
	if err != nil {
		return report, err
	}
	if _, err := order(members, ""); err != nil { // each says that it is ready
		return report, err
	}
	var took []time.Duration
	var sum, used time.Duration
	for range o.Batches {
		before, err := order(members, "cpu")
		if err != nil {
			return report, err
		}
		began := time.Now()
		if _, err := order(members[:o.Proposers], "acquire"); err != nil {
			return report, err
		}
		took = append(took, time.Since(began))
		sum += took[len(took)-1]
		after, err := order(members, "cpu")
		if err != nil {
			return report, err
		}
		used += after - before
		if _, err := order(members[:o.Proposers], "release"); err != nil {
			return report, err
		}
	}
	slices.Sort(took)
	leases := float64(o.Proposers * o.Leases * o.Batches)
	report.Seconds, report.LeasesPerSecond = sum.Seconds(), leases/sum.Seconds()
	report.CPUMicros = used.Seconds() * 1e6 / leases
	report.BatchMillisP50, report.BatchMillisMax = millis(took[len(took)/2]), millis(took[len(took)-1])
	return report, nil
}

// A benchMember is a process that does what it is told, line by line, and answers
// each order with a line.
type benchMember struct {
	command *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
}

// start starts the members. Those that were started are returned with an error,
// too.
func (o *fleaseBench) start(ctx context.Context, errs io.Writer) ([]*benchMember, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(o.Members)
	if err != nil {
		return nil, err
	}
	for i, addr := range addrs {
		addrs[i] = fmt.Sprintf("%d=%s", i+1, addr)
	}
	var members []*benchMember
	for i := range addrs {
		m := &benchMember{command: exec.CommandContext(ctx, program,
			"flease", "bench-member", "--id", fmt.Sprint(i+1), "--members", strings.Join(addrs, ","),
			"--leases", fmt.Sprint(o.Leases), "--lease", o.Lease.String(),
			fmt.Sprintf("--sealed=%t", o.Sealed), fmt.Sprintf("--tcp=%t", o.TCP))}
		m.command.Stderr = errs
		out, err := m.command.StdoutPipe()
		if err != nil {
			return members, err
		}
		if m.orders, err = m.command.StdinPipe(); err != nil {
			return members, err
		}
		m.answers = bufio.NewScanner(out)
		if err := m.command.Start(); err != nil {
			return members, err
		}
		members = append(members, m)
	}
	return members, nil
}

// freeAddrs returns addresses on the loopback whose ports nobody has, neither for
// connections nor for datagrams. They are free again, so that somebody may be
// faster.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	var taken []io.Closer // until all are found, so that they differ
	defer func() {
		for _, c := range taken {
			_ = c.Close() // nobody was there
		}
	}()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		taken = append(taken, l)
		p, err := net.ListenPacket("udp", l.Addr().String())
		if err != nil {
			continue
		}
		taken = append(taken, p)
		if addrs = append(addrs, l.Addr().String()); len(addrs) == n {
			return addrs, nil
		}
	}
	return nil, errors.New("no ports are free")
}

// order gives all members an order, if it is not empty, and waits until all have
// answered that it is done. It returns the CPU time that they have used so far, all
// together.
func order(members []*benchMember, what string) (used time.Duration, _ error) {
	for _, m := range members {
		if what == "" {
			continue
		}
		if _, err := io.WriteString(m.orders, what+"\n"); err != nil {
			return 0, fmt.Errorf("a member has ended: %w", err)
		}
	}
	for _, m := range members {
		if !m.answers.Scan() {
			return 0, errors.New("a member has ended")
		}
		var nanos int64
		if _, err := fmt.Sscanf(m.answers.Text(), "done %d", &nanos); err != nil {
			return 0, errors.New("a member says: " + shown(m.answers.Text()))
		}
		used += time.Duration(nanos)
	}
	return used, nil
}
