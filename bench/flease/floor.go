package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/bench/cast"
)

// A floor is three processes that exchange the messages of leases, and nothing
// else.
type floor struct {
	members group
}

func beginFloor(ctx context.Context) (*floor, error) {
	addrs, err := cast.FreePorts(proposers)
	if err != nil {
		return nil, err
	}
	members, err := cast.BeginGroup(ctx, "floor-member", proposers, func(i int) []string {
		return []string{"-index", strconv.Itoa(i), "-members", strings.Join(addrs, ",")}
	})
	if err != nil {
		return nil, err
	}
	return &floor{members}, nil
}

func (f *floor) acquire(_ context.Context, batch int, name string) (turn, error) {
	done, err := f.members.Ask(order{Do: orderAcquire, Batch: batch, Name: name})
	return cast.Together(done), err
}

func (*floor) release(context.Context) error { return nil }

func (f *floor) close() { f.members.Close() }
