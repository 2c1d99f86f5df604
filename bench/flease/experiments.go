package main

import (
	"context"
	"fmt"
	"time"
)

// usualBatch is how many leases each process wants at a time.
const usualBatch = 10_000

// batchSizes and groupSizes are those of the paper's figures 3 and 5, with some
// between the two of figure 3.
func batchSizes() []int { return []int{1_000, 2_000, 5_000, 10_000, 20_000, 50_000} }
func groupSizes() []int { return []int{3, 4, 5, 6, 7, 8, 9, 10, 15} }

// A standing is how one did in the contest.
type standing struct {
	Name    string
	Acquire string // what one acquisition is
	Rate    summary
}

// contest is everyone beside everyone, in batches of 10,000.
func (r *referee) contest(ctx context.Context, a *arena, rounds int) ([]standing, error) {
	r.progress("acquiring leases, side by side")
	turns, err := r.compete(ctx, a.all, rounds, usualBatch)
	if err != nil {
		return nil, err
	}
	var standings []standing
	for i, e := range a.all {
		standings = append(standings, standing{e.name, whatItDoes(e.name), summarise(turns[i])})
	}
	return standings, nil
}

// A point is how one did at one size, of batches or of groups.
type point struct {
	Name string
	Size int
	Rate summary
}

// batchFigure is figure 3: does it matter how many are wanted at a time?
func (r *referee) batchFigure(ctx context.Context, a *arena, rounds int) ([]point, error) {
	all := a.named(nameFlease, nameEtcdClient, nameEtcd, nameZooKeeper)
	turns := make(map[point][]turn)
	for round := range rounds {
		r.progress("figure 3, batches of several sizes, round %d of %d", round+1, rounds)
		for _, size := range batchSizes() {
			for _, e := range all {
				t, err := r.turn(ctx, e, size)
				if err != nil {
					return nil, err
				}
				p := point{Name: e.name, Size: size}
				turns[p] = append(turns[p], t)
			}
		}
	}
	var points []point
	for _, e := range all {
		for _, size := range batchSizes() {
			p := point{Name: e.name, Size: size}
			points = append(points, point{p.Name, p.Size, summarise(turns[p])})
		}
	}
	return points, nil
}

// longLease outlasts the slowest batch of figure 5 by so much that nobody renews in
// it: 150,000 leases, each agreed upon by 15.
const longLease = 30 * time.Second

// groupFigure is figure 5: what does it cost that more have to agree? As many
// processes as the largest group has members want leases in all cases.
func (r *referee) groupFigure(ctx context.Context, rounds int) ([]point, error) {
	sizes := groupSizes()
	processes := sizes[len(sizes)-1]
	r.progress("figure 5: starting %d processes", processes)
	f, err := beginFlease(ctx, processes, longLease, false)
	if err != nil {
		return nil, err
	}
	defer f.close()
	turns := make([][]turn, len(sizes))
	for round := range rounds + 1 { // the first does not count
		r.progress("figure 5, groups of several sizes, round %d of %d", round, rounds)
		for i, size := range sizes {
			f.size = size
			t, err := r.turn(ctx, entry{fmt.Sprintf("groups of %d", size), f}, usualBatch)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				turns[i] = append(turns[i], t)
			}
		}
	}
	var points []point
	for i, size := range sizes {
		points = append(points, point{nameFlease, size, summarise(turns[i])})
	}
	return points, nil
}
