package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	"github.com/leasehold-dev/leasehold/owner"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// joins lets owners join within a second and waits until the table is complete:
// every key is held, and every owner has its share.
func joins(ctx context.Context, s *system, n int) ([]*owner.Owner, error) {
	if err := s.create(ctx, "joins"); err != nil {
		return nil, err
	}
	owners := make([]*owner.Owner, n)
	errs := make([]error, n)
	begun := time.Now()
	var joining sync.WaitGroup
	for i := range n {
		joining.Go(func() {
			select {
			case <-time.After(time.Second * time.Duration(i) / time.Duration(n)):
			case <-ctx.Done():
				return
			}
			owners[i], errs[i] = owner.Join(ctx, owner.Config{
				Namespace: "joins", Managers: []string{s.addr}, Name: leasehold.OwnerID(fmt.Sprintf("o%04d", i)),
				Addr: fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255|1),
			})
		})
	}
	joining.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	fmt.Printf("joins      %d owners were accepted after %v\n", n, time.Since(begun).Round(time.Millisecond))
	for ctx.Err() == nil {
		share, poorest, fewest := 0.0, 1.0, 1<<30
		for _, o := range owners {
			mine := 0.0
			leases := o.Leases()
			for _, l := range leases {
				mine += (float64(l.Range.Last()-l.Range.Start) + 1) / (1 << 64)
			}
			share += mine
			poorest, fewest = min(poorest, mine), min(fewest, len(leases))
		}
		if share > 0.999999999 && poorest > 0 && settled(ctx, s) {
			fmt.Printf("joins      the table was complete after %v (wanted: 10s); the fewest leases of an owner are %d\n", time.Since(begun).Round(time.Millisecond), fewest)
			return owners, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, fmt.Errorf("the table was not complete in time: %w", ctx.Err())
}

// settled reports whether the table no longer changes.
func settled(ctx context.Context, s *system) bool {
	lsn := func() uint64 {
		answer, err := s.admin.GetStatus(ctx, &leaseholdv1.GetStatusRequest{Version: wire.Version})
		if err != nil {
			return 0
		}
		for _, n := range answer.GetNamespaces() {
			if n.GetName() == "joins" && n.GetVacant() == 0 {
				return n.GetLsn()
			}
		}
		return 0
	}
	first := lsn()
	time.Sleep(200 * time.Millisecond)
	return first != 0 && first == lsn()
}
