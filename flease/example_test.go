package flease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// Three members, here in one process: only one of them runs the nightly report.
func Example() {
	ctx := context.Background()
	members := []flease.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	network := &flease.Memory{} // members on other computers have addresses and a key instead
	var nodes []*flease.Node
	for _, m := range members {
		node, err := flease.Start(flease.Config{
			Self: m.ID, Members: members, Transport: network,
			Lease: 200 * time.Millisecond, Epsilon: 20 * time.Millisecond, // seconds are usual
		})
		if err != nil {
			log.Fatal(err)
		}
		nodes = append(nodes, node)
	}

	lease, err := nodes[0].Acquire(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	var held *flease.HeldError
	if _, err := nodes[1].TryAcquire(ctx, "reports/nightly"); errors.As(err, &held) {
		fmt.Println("member", held.Holder, "holds the lease")
	}
	if lease.Valid() {
		fmt.Println("member 1 writes the report") // with lease.Fence()
	}
	if err := lease.Release(ctx); err != nil {
		log.Fatal(err)
	}
	next, err := nodes[1].Acquire(ctx, "reports/nightly")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("member 2 holds the lease, with a higher fence:", next.Fence() > lease.Fence())
	for _, node := range nodes {
		_ = node.Close(ctx) // its leases are free at once, if a majority still runs
	}
	// Output:
	// member 1 holds the lease
	// member 1 writes the report
	// member 2 holds the lease, with a higher fence: true
}
