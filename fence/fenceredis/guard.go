package fenceredis

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// DefaultPrefix is the default of Guard.Prefix.
const DefaultPrefix = "leasehold:fence:"

// MinTTL is the minimum of Guard.TTL.
const MinTTL = time.Minute

// Guard guards writes to Redis. The zero Guard is ready to use. It has no state and is safe
// for concurrent use, with any number of clients.
type Guard struct {
	// Prefix begins the keys of fences. Default DefaultPrefix. It must not contain braces.
	// Generations of different namespaces are unrelated: give each namespace its own
	// prefix, or different resources.
	Prefix string

	// TTL is how long a generation is stored after the last write. A later write is not
	// rejected. Default 0: forever. It is at least MinTTL and should be days: longer than
	// a process can be paused.
	TTL time.Duration
}

// Key returns the key with the generation of a resource. The resource is its hash tag: in a
// cluster, keys with the tag "{resource}" are in the same slot.
func (g Guard) Key(resource string) string {
	return cmp.Or(g.Prefix, DefaultPrefix) + "{" + resource + "}"
}

// checkOnly is a script without an application's part.
var checkOnly = NewScript("")

// Check stores a generation: later writes of earlier owners are rejected. A new owner calls it
// before it reads its state. It fails with [leasehold.ErrStale] if a later owner has written.
// It costs one round trip.
//
// It does not permit writes without the guard, because the next owner may write first: use
// [Guard.Run] and [Guard.Do].
func (g Guard) Check(ctx context.Context, client redis.UniversalClient, resource string, generation leasehold.Generation) error {
	err := g.Run(ctx, client, checkOnly, resource, generation, nil).Err()
	if errors.Is(err, redis.Nil) { // the result of a script without a return value
		return nil
	}
	return err
}

func (g Guard) validate(ctx context.Context, script *Script, resource string, generation leasehold.Generation) error {
	const braces = "{}"
	invalid := func(why string) error { return leasehold.Errorf(token.Op, leasehold.ErrInvalid, resource, "%s", why) }
	if err := token.Validate(resource, generation); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(resource, braces):
		return invalid("the resource is a hash tag of Redis and must not contain braces")
	case strings.ContainsAny(g.Prefix, braces):
		return invalid("the prefix must not contain braces, which are for the resource")
	case g.TTL != 0 && g.TTL < MinTTL:
		return invalid("the TTL must be at least " + MinTTL.String() + ", or 0 for no expiry")
	case script.flags:
		return invalid("the script begins with #!, which is not supported: remove that line")
	case ctx.Err() != nil:
		return token.Unwritten(leasehold.ErrUnavailable, resource, ctx.Err())
	}
	return nil
}

// A Command is a Redis command with its arguments, of the types that go-redis accepts:
// Command{"SET", "{alice}:address", "10.0.1.7:8080"}.
type Command []any

// Limits of Do. Redis is blocked by a script, and its Lua permits about 8,000 arguments of a
// command.
const (
	MaxCommands = 1024
	MaxWords    = 4096 // of one command, its name included
)

// commands runs commands, each as the number of its words and the words, and returns their
// replies.
var commands = NewScript(`
local replies, at = {}, 1
while at <= #ARGV do
	local last = at + tonumber(ARGV[at])
	replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, last))
	at = last + 1
end
return replies`)

// Do runs commands atomically if no later owner of the resource has written, and returns their
// replies: strings, int64s, slices of these, and nil. keys are the keys of the commands.
//
// If a later owner has written, it fails with [leasehold.ErrStale] and runs nothing. If a
// command fails, the ones before it have been executed, and those after it have not.
//
// It costs one round trip. For commands that depend on each other, use [Guard.Run].
func (g Guard) Do(ctx context.Context, client redis.UniversalClient, resource string, generation leasehold.Generation, keys []string, cmds ...Command) ([]any, error) {
	invalid := func(format string, args ...any) ([]any, error) {
		return nil, leasehold.Errorf(token.Op, leasehold.ErrInvalid, resource, format, args...)
	}
	if len(cmds) == 0 || len(cmds) > MaxCommands {
		return invalid("%d commands: want 1 to %d", len(cmds), MaxCommands)
	}
	var words []any
	for i, cmd := range cmds {
		if len(cmd) == 0 || len(cmd) > MaxWords {
			return invalid("command %d has %d words: want 1 to %d", i, len(cmd), MaxWords)
		}
		words = append(append(words, len(cmd)), cmd...)
	}
	return g.Run(ctx, client, commands, resource, generation, keys, words...).Slice()
}
