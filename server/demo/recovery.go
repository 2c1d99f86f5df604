package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// maxFollowed bounds the keys whose next owners are awaited.
const maxFollowed = 10_000

// generations are those of the leases of some keys.
type generations map[leasehold.Key]leasehold.Generation

// leasesOf returns the leases of a server in the table of the callers.
func (l *load) leasesOf(server leasehold.OwnerID) generations {
	leases := make(generations)
	for _, u := range l.users.each(maxFollowed) {
		if p, ok := l.table.At(u.key); ok && p.Owner == server {
			leases[u.key] = p.Generation
		}
	}
	return leases
}

// awaitNextOwners waits until each key has a later lease than before, in the table of the callers.
func (l *load) awaitNextOwners(ctx context.Context, before generations) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		changed := l.table.Changed()
		for key, generation := range before {
			if p, ok := l.table.At(key); ok && p.Generation > generation {
				delete(before, key)
			}
		}
		if len(before) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the next owners of %s: %w", count(len(before), "key"), ctx.Err())
		}
	}
}

// recover measures the time until the keys of a server that is killed now have the next owners.
func (n *nemesis) recover(ctx context.Context, server string, leases generations) error {
	begin, keys := time.Now(), len(leases)
	if err := n.load.awaitNextOwners(ctx, leases); err != nil {
		return err
	}
	took := time.Since(begin)
	n.count(func(f *FaultCounts) { f.RecoveryMillis = append(f.RecoveryMillis, millis(took)) })
	n.cluster.journal.add("all %s of %s have the next owner, %d ms after the kill", count(keys, "key"), server, took.Milliseconds())
	return nil
}
