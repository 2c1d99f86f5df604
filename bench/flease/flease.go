package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cast"
)

// A fleaseGroup is processes of Flease, all of which want leases.
type fleaseGroup struct {
	members group
	size    int // of the groups that agree
}

func beginFlease(ctx context.Context, members int, lease time.Duration, sealed bool) (*fleaseGroup, error) {
	addrs, err := cast.FreePorts(members)
	if err != nil {
		return nil, err
	}
	g, err := cast.BeginGroup(ctx, "flease-member", members, func(i int) []string {
		return []string{
			"-self", strconv.Itoa(i + 1), "-members", strings.Join(addrs, ","),
			"-lease", lease.String(), "-sealed=" + strconv.FormatBool(sealed),
		}
	})
	if err != nil {
		return nil, err
	}
	return &fleaseGroup{members: g, size: 3}, nil
}

func (f *fleaseGroup) acquire(_ context.Context, batch int, name string) (turn, error) {
	done, err := f.members.Ask(order{Do: orderAcquire, Batch: batch, Name: name, Group: f.size})
	if err != nil {
		return turn{}, err
	}
	t := cast.Together(done)
	if t.Leases == 0 {
		return turn{}, fmt.Errorf("all leases were lost before the batch was complete: the computer is too slow, or too busy")
	}
	return t, nil
}

func (f *fleaseGroup) release(context.Context) error {
	_, err := f.members.Ask(order{Do: orderRelease})
	return err
}

func (f *fleaseGroup) close() { f.members.Close() }
