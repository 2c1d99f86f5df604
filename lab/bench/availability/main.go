package main

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "For how long is a key not served? Three managers with their stores embedded, servers with the library's owners, and frontends that find the\n" +
	"server of a key with the library's lookup and call it, again until it is served: all of them processes, with the usual times (leases of 10 s,\n" +
	"a leader of 2 s). What counts is how long an operation takes, from its begin until it is served. 128 frontends watch a key each, and\n" +
	"call again 5 ms after they were served, while a server is shut down, or dies, or the leader dies, or the store's leader does. Leases go on\n" +
	"without a leader, so nothing should be felt when one dies; what cannot happen meanwhile is a change, and how long that\n" +
	"lasts is measured as well: until a namespace could be made. Then PRS's figure 9: a rack of 50 of 250 servers is reset."

func main() {
	proc.Play(loadgen.Roles())
	report.Main(report.Benchmark{
		Name: "availability", Number: 5, Title: "Availability", About: about, Rounds: 4, Quick: 1,
		Modules: []string{"google.golang.org/grpc", "go.etcd.io/etcd/server/v3"},
		Run:     run,
	})
}

// servers is how many there are for single events, each a process.
const servers = 4

func run(ctx context.Context, r *report.Run) error {
	all := events()
	r.Expect(1 + len(all)*r.Rounds + 4)
	s, err := newSite(ctx, servers, 1, 4)
	if err != nil {
		return err
	}
	r.Step("%d managers and %d servers are there", len(s.group.All), servers)
	outcomes := make([][]outcome, len(all))
	err = report.Rounds(ctx, r.Rounds, len(all), func(round, i int) error {
		o, err := s.undergo(ctx, all[i])
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].title, err)
		}
		outcomes[i] = append(outcomes[i], o)
		r.Step("round %d: %s: %v", round+1, all[i].title, o.service.Round(time.Millisecond))
		return nil
	}, nil)
	s.close()
	if err != nil {
		return err
	}
	reportEvents(r.Result, all, outcomes)
	if r.Quick {
		return nil
	}
	reset, err := reset(ctx, r)
	if err != nil {
		return fmt.Errorf("a rack is reset: %w", err)
	}
	reportReset(r.Result, reset)
	return nil
}
