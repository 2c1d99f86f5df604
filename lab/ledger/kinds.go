package main

import (
	"context"
	"fmt"
	"strings"
)

// A kind is a set of worlds.
type kind struct {
	name  string
	what  string
	flags string // of leasehold-lab; empty: the worlds are those of lab/procsim
	seeds uint64 // of a block, which takes about a minute
}

var kinds = []kind{
	{"default", "managers with a store, all faults", "sim", 2000},
	{"diskless", "managers without a store", "sim --diskless", 2000},
	{"agents", "owners behind agents", "sim --agents", 2000},
	{"supervised", "owners with supervisors, which report crashes", "sim --supervised", 2000},
	{"embedded", "managers without a store inside the owners' processes", "sim --embedded", 2000},
	{"outage", "outages of managers, store and network, one second to one day", "sim --faults default,outage=8", 2000},
	{"diskless outage", "the same without a store", "sim --diskless --faults default,outage=8", 2000},
	{"restore", "stores restored from backups of any age", "sim --faults default,store-restore=8", 2000},
	{"moves", "moves of state under crashes and failovers", "sim --owners 2 --namespaces 1 --faults move-range=30,manager-crash=30,manager-pause=20,isolate=30,loss=10", 2000},
	{"flease", "leases without managers", "flease sim", 2000},
	{"processes", "whole processes, with their shells", "", 80},
}

// processTest is the test of lab/procsim that runs worlds. Worlds are simulated in tests: testing/synctest needs one.
const processTest = "TestWorlds"

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// choose returns the kinds to run: all, or the one with this name.
func choose(only string) ([]kind, error) {
	if only == "" {
		return kinds, nil
	}
	for _, k := range kinds {
		if k.name == only {
			return []kind{k}, nil
		}
	}
	return nil, fmt.Errorf("-only %q: want one of %s", only, strings.Join(kindNames(), ", "))
}

// command returns the command that runs seeds again.
func (k *kind) command(first, seeds uint64) string {
	if k.flags == "" {
		return fmt.Sprintf("GOMAXPROCS=1 go test ./lab/procsim -count 1 -timeout 0 -run %s -args -first %d -worlds %d", processTest, first, seeds)
	}
	return fmt.Sprintf("go run ./cmd/leasehold-lab %s --seed %d --seeds %d", k.flags, first, seeds)
}

// A result is what leasehold-lab and lab/procsim report about a block of seeds.
type result struct {
	Seeds      uint64         `json:"seeds"`
	Ended      string         `json:"ended"`
	Violations int            `json:"violations"`
	Hours      float64        `json:"simulatedHours"`
	Seconds    float64        `json:"elapsedSeconds"`
	Faults     map[string]int `json:"faults"`
}

// run runs the next block of seeds.
func (k *kind) run(ctx context.Context, p *programs, first uint64) (r result, err error) {
	if k.flags == "" {
		r, err = p.simulateProcesses(ctx, first, k.seeds)
	} else {
		args := append(strings.Fields(k.flags), fmt.Sprintf("--seed=%d", first), fmt.Sprintf("--seeds=%d", k.seeds), "--json")
		r, err = decode(output(ctx, nil, p.lab, args...))
	}
	if r.Ended != "completed" && r.Violations == 0 { // a search ends early at a violation
		return r, fmt.Errorf("the search has ended early: %q: %w", r.Ended, err)
	}
	return r, nil
}
