// Command security measures what TLS and an access policy cost, and how well they
// protect the others from one identity that floods.
//
//	cd lab/bench && go run ./security                  all of it, in half a minute
//	cd lab/bench && go run ./security -only messages   one part: renewals, messages, calls or connections
//
// Of renewals the rate is compared, of floods the latency of a renewal.
package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

const about = "What do TLS and an access policy cost, and how well do they protect owners from another identity that floods? 128 owners with a connection each. First\n" +
	"they renew again as soon as they are answered, at a manager in plain text and at one with certificates and a policy. Then they renew five times a second at\n" +
	"the latter, while nothing else happens and while one identity sends all that it can: messages on 64 streams, calls, or new connections. All are processes of one\n" +
	"computer; the flood has the lowest priority, since it stands for another computer."

const (
	owners = 128
	turn   = time.Second
	// pace is how often an owner renews beside a flood.
	pace = 200 * time.Millisecond

	partRenewals = "renewals"
)

// The goals.
const (
	leastShare = 0.6 // of the rate in plain text
	mostTimes  = 2.0 // the latency without a flood, p99
)

func main() {
	proc.Play(map[string]proc.Role{roleFlood: proc.RoleOf(startFlood)})
	report.Main(report.Benchmark{
		Name: "security", Number: 10, Title: "Security", About: about, Rounds: 4, Quick: 1,
		Modules: []string{"google.golang.org/grpc"},
		Parts:   append([]string{partRenewals}, floods...), Run: run,
	})
}

func run(ctx context.Context, r *report.Run) error {
	r.Expect(1 + len(r.Parts)*r.Rounds)
	s, err := startSite(ctx, r.Dir)
	defer s.Close()
	if err != nil {
		return err
	}
	r.Step("both managers lead")
	if !r.Wants(partRenewals) {
		return s.floods(ctx, r, r.Parts)
	}
	if err := s.renewals(ctx, r); err != nil {
		return err
	}
	return s.floods(ctx, r, r.Parts[1:])
}

func (s *site) renewals(ctx context.Context, r *report.Run) error {
	groups := make([]renewers, 2)
	for i, m := range []*proc.Managers{s.plain, s.guarded} {
		var err error
		groups[i], err = s.newRenewers(ctx, m)
		defer groups[i].close()
		if err != nil {
			return err
		}
	}
	rates := make([][]float64, 2)
	err := report.Rounds(ctx, r.Rounds, 2, func(_, i int) error {
		rate, err := groups[i].rate(ctx)
		rates[i] = append(rates[i], rate)
		return err
	}, func(round int) { r.Step("renewals, round %d of %d", round+1, r.Rounds) })
	if err != nil {
		return err
	}
	plain, guarded, share := report.Summarise(rates[0]), report.Summarise(rates[1]), report.PairedRatio(rates[1], rates[0])
	t := report.NewTable("", "renewals a second", "median", "low", "high")
	t.Add("plain text", plain)
	t.Add("TLS and a policy", guarded)
	r.Add(report.Section{
		Title: "What they cost", Table: t,
		Text: fmt.Sprintf("%d owners with %d ranges. With TLS and a policy the rate is %s of that in plain text, in the median of the rounds.",
			owners, groups[1].held(), report.Number(share)),
	})
	r.More("renewals", guarded.Median, "1/s", "plain text", plain.Median)
	r.Want(fmt.Sprintf("renewals with TLS and a policy: at least %v of the rate in plain text", leastShare), share, "", share >= leastShare)
	return nil
}

// floods compares the latency of the others' renewals while one identity floods and
// while not.
func (s *site) floods(ctx context.Context, r *report.Run, kinds []string) error {
	if len(kinds) == 0 {
		return nil
	}
	g, err := s.newRenewers(ctx, s.guarded)
	defer func() { g.close() }()
	if err != nil {
		return err
	}
	t := report.NewTable("", "flood of", "p50, ms", "p99, ms", "flooded: p50, ms", "p99, ms", "times", "low", "high")
	for _, kind := range kinds {
		var calm, flooded, ratios []float64
		err := report.Rounds(ctx, r.Rounds, 1, func(int, int) error {
			before, err := g.latencies(ctx)
			if err != nil {
				return err
			}
			beside, err := s.flooded(ctx, kind, func() ([]float64, error) { return g.latencies(ctx) })
			if err != nil {
				return err
			}
			calm, flooded = append(calm, before...), append(flooded, beside...)
			ratios = append(ratios, quantile(beside, 0.99)/quantile(before, 0.99))
			return nil
		}, func(round int) { r.Step("a flood of %s, round %d of %d", kind, round+1, r.Rounds) })
		if err != nil {
			return err
		}
		times := report.Summarise(ratios)
		t.Add(kind, quantile(calm, 0.5), quantile(calm, 0.99), quantile(flooded, 0.5), quantile(flooded, 0.99), times)
		r.Less("flood-of-"+kind, quantile(flooded, 0.99), "ms, p99", "no flood", quantile(calm, 0.99))
		r.Want(fmt.Sprintf("a flood of %s: renewals of others take less than %v times as long, p99", kind, mostTimes), times.Median, "times", times.Median < mostTimes)
	}
	r.Add(report.Section{Title: "A flood", Text: "The latency of a renewal, without a flood and beside one, and the ratio of the p99 of neighbouring turns.", Table: t})
	return nil
}

func quantile(values []float64, share float64) float64 {
	return report.Quantile(slices.Sorted(slices.Values(values)), share)
}

// rate lets all renew again and again for a turn, and returns the renewals per second.
func (g renewers) rate(ctx context.Context) (float64, error) {
	counts := make([]int, len(g))
	begun := time.Now()
	err := proc.Each(len(g), func(i int) error {
		for time.Since(begun) < turn && ctx.Err() == nil {
			if _, err := g[i].renew(); err != nil {
				return err
			}
			counts[i]++
		}
		return ctx.Err()
	})
	took := time.Since(begun)
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(sum) / took.Seconds(), err
}

// latencies lets all renew at their pace for a turn, and returns how long each took, in
// milliseconds.
func (g renewers) latencies(ctx context.Context) (all []float64, err error) {
	var mu sync.Mutex
	begun := time.Now()
	err = proc.Each(len(g), func(i int) error {
		next := begun.Add(pace * time.Duration(i) / time.Duration(len(g)))
		for ; next.Sub(begun) < turn; next = next.Add(pace) {
			if err := proc.Pause(ctx, time.Until(next)); err != nil {
				return err
			}
			took, err := g[i].renew()
			if err != nil {
				return err
			}
			mu.Lock()
			all = append(all, 1e3*took.Seconds())
			mu.Unlock()
		}
		return nil
	})
	return all, err
}
