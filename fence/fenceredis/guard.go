package fenceredis

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"github.com/redis/go-redis/v9"
)

// DefaultPrefix is what the keys of fences begin with unless Guard says otherwise.
const DefaultPrefix = "leasehold:fence:"

// MinTTL is the least that Guard.TTL can be.
const MinTTL = time.Minute

// Guard guards writes to Redis. The zero Guard is ready to be used. It has no
// state: its methods may be called by many goroutines at once, and with many
// clients.
type Guard struct {
	// Prefix is what the keys of fences begin with. Default DefaultPrefix. It has
	// no braces. Each namespace has its own generations: give each a prefix of its
	// own, or resources that differ.
	Prefix string

	// TTL is for how long a generation is remembered after the last write. A writer
	// that is later than that is no longer refused. Default 0: for ever. At least
	// MinTTL, and better days: more than any process can be stopped and go on.
	TTL time.Duration
}

// Key returns the key that remembers the generation of a resource. The resource
// is its hash tag: in a cluster, keys with the tag "{resource}" are in one slot
// with it.
func (g Guard) Key(resource string) string {
	prefix := g.Prefix
	if prefix == "" {
		prefix = DefaultPrefix
	}
	return prefix + "{" + resource + "}"
}

// checkOnly is the guard's part of a script, and none of the application's.
var checkOnly = NewScript("")

// Check makes Redis know of a generation: what earlier owners write from now on is
// refused. A new owner calls it before it reads what it will act upon. It fails
// with [leasehold.ErrStale] if a later owner has come. It is one round trip.
//
// It is no leave to write without the guard, since the next owner may come between:
// that is what [Guard.Run] and [Guard.Do] are for.
func (g Guard) Check(ctx context.Context, client redis.UniversalClient, resource string, generation leasehold.Generation) error {
	err := g.Run(ctx, client, checkOnly, resource, generation, nil).Err()
	if errors.Is(err, redis.Nil) { // which is what a script that returns nothing returns
		return nil
	}
	return err
}

// validate reports what is wrong before anything is sent.
func (g Guard) validate(ctx context.Context, script *Script, resource string, generation leasehold.Generation) error {
	const braces = "{}"
	invalid := func(why string) error { return leasehold.Errorf(token.Op, leasehold.ErrInvalid, resource, "%s", why) }
	if err := token.Validate(resource, generation); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(resource, braces):
		return invalid("the resource is a hash tag of Redis, which has no braces")
	case strings.ContainsAny(g.Prefix, braces):
		return invalid("the prefix has braces, which are for the resource")
	case g.TTL != 0 && g.TTL < MinTTL:
		return invalid("a fence must be remembered for " + MinTTL.String() + " at least, or for ever, which is 0")
	case script.flags:
		return invalid("the script begins with #!, which is not possible here: leave that line out")
	case ctx.Err() != nil:
		return leasehold.Errorf(token.Op, leasehold.ErrUnavailable, resource, "nothing was written: %w", ctx.Err())
	}
	return nil
}
