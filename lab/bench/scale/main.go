package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
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
	var only string
	report.Main(report.Benchmark{
		Name: "scale", Number: 3, Title: "Manager at scale", About: about, Rounds: 5, Quick: 2,
		Modules: []string{"google.golang.org/grpc", "go.etcd.io/etcd/server/v3"},
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&only, "only", "", "sizes, separated by commas: rollout, outage, centrifuge, prs, joins, 5x, patient, group, 25x, 25x-sparse (default all)")
		},
		Run: func(ctx context.Context, r *report.Run) error { return run(ctx, r, only) },
	})
}

func run(ctx context.Context, r *report.Run, only string) error {
	asked, err := report.Only(only, sizes(r.Quick && only == ""), func(s size) string { return s.name })
	if err != nil {
		return err
	}
	steps := 0
	for _, s := range asked {
		steps += s.progress(r.Rounds)
	}
	r.Expect(steps)
	var (
		found  []*finding
		outage *outageFinding
	)
	for _, s := range asked {
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
