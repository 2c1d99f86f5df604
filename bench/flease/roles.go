package main

import (
	"context"

	"github.com/leasehold-dev/leasehold/bench/cast"
)

// What the processes of this command say to each other.
type (
	process = cast.Process
	group   = cast.Group
	order   = cast.Order
	answer  = cast.Answer
	turn    = cast.Turn
)

// The orders, besides those of lock services. Each role knows some of them.
const (
	orderAcquire = "acquire" // a batch of leases
	orderRelease = "release" // what was acquired
	orderWrite   = "write"   // keeps the disk busy, until told to rest
	orderRest    = "rest"
)

// roles are what a process of this program can be.
func roles() map[string]cast.Start {
	all := cast.LockServices()
	all["flease-member"], all["floor-member"], all["disk-writer"] = startFlease, startFloor, startWriter
	return all
}

// locks is a lock service as a contestant: its clients acquire as many leases as
// all proposers want.
type locks struct {
	service interface {
		Acquire(ctx context.Context, n int, name string) (cast.Turn, error)
		Release(ctx context.Context) error
		Close()
	}
}

func (l locks) acquire(ctx context.Context, batch int, name string) (turn, error) {
	return l.service.Acquire(ctx, proposers*batch, name)
}

func (l locks) release(ctx context.Context) error { return l.service.Release(ctx) }

func (l locks) close() { l.service.Close() }
