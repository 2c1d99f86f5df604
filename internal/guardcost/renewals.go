package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// renewals compares how many renewals a second the two managers give.
func renewals(ctx context.Context, t *town, p plan) error {
	plain, err := newGuild(ctx, t.plain, p.owners, func(int) (credentials.TransportCredentials, error) { return insecure.NewCredentials(), nil })
	defer func() { plain.close() }()
	if err != nil {
		return err
	}
	guarded, err := newGuild(ctx, t.guarded, p.owners, t.owner)
	defer func() { guarded.close() }()
	if err != nil {
		return err
	}
	for _, g := range []guild{plain, guarded} {
		if err := g.settle(ctx); err != nil {
			return err
		}
	}
	var without, with, ratios []float64
	for range p.rounds {
		one, err := plain.rate(ctx, p.turn)
		if err != nil {
			return err
		}
		other, err := guarded.rate(ctx, p.turn)
		if err != nil {
			return err
		}
		without, with, ratios = append(without, one), append(with, other), append(ratios, other/one)
	}
	fmt.Printf("renewals  %d owners, %d ranges, a connection each, %d rounds\n", p.owners, guarded.held(), p.rounds)
	fmt.Printf("          plain %.0f/s, with TLS and a policy %.0f/s: %.2f of it, rounds from %.2f to %.2f (wanted: 0.60)\n",
		median(without), median(with), median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// owner returns the credentials of an owner.
func (t *town) owner(i int) (credentials.TransportCredentials, error) {
	return t.credentials("owner", string(namespace), owner(i))
}

// rate lets everybody renew again and again for a while, and returns how often they did in a
// second, together.
func (g guild) rate(ctx context.Context, turn time.Duration) (float64, error) {
	counts := make([]int, len(g))
	begun := time.Now()
	err := g.each(func(i int, r *renewer) error {
		for time.Since(begun) < turn && ctx.Err() == nil {
			if _, err := r.renew(); err != nil {
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

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile is the value below which a share of them are.
func quantile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
