package fenceredis_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/fenceredis"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/redis/go-redis/v9"
)

// A server records a user's address and a count if no later owner has written.
func ExampleGuard_Run() {
	var (
		client *redis.Client // the application's
		o      *owner.Owner  // from owner.Join
		guard  fenceredis.Guard
	)
	here := fenceredis.NewScript(`
		redis.call('SET', KEYS[1], ARGV[1], 'EX', 60)
		return redis.call('INCR', KEYS[2])`)
	note := func(ctx context.Context, user, address string) (int64, error) {
		lease, ok := o.Check(leasehold.KeyOf(user))
		if !ok {
			return 0, leasehold.ErrNotOwner
		}
		keys := []string{"{" + user + "}:address", "{" + user + "}:count"}
		n, err := guard.Run(ctx, client, here, user, lease.Generation, keys, address).Int64()
		if errors.Is(err, leasehold.ErrStale) {
			return 0, leasehold.ErrNotOwner // the caller retries at the new owner
		}
		return n, err
	}
	_ = note
}

// The same with commands.
func ExampleGuard_Do() {
	var (
		client *redis.Client
		lease  owner.Lease // from Check
		guard  fenceredis.Guard
	)
	note := func(ctx context.Context, address string) error {
		_, err := guard.Do(ctx, client, "alice", lease.Generation, []string{"{alice}:address", "{alice}:count"},
			fenceredis.Command{"SET", "{alice}:address", address, "EX", 60},
			fenceredis.Command{"INCR", "{alice}:count"})
		return err
	}
	_ = note
}

func ExampleGuard_Key() {
	fmt.Println(fenceredis.Guard{}.Key("alice"))
	fmt.Println(fenceredis.Guard{Prefix: "presence:fence:"}.Key("alice"))
	// Output:
	// leasehold:fence:{alice}
	// presence:fence:{alice}
}
