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
	return cmp.Or(g.Prefix, DefaultPrefix) + "{" + resource + "}"
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
		return token.Unwritten(leasehold.ErrUnavailable, resource, ctx.Err())
	}
	return nil
}

// A Command is a command of Redis with its arguments, as go-redis takes them:
// Command{"SET", "{alice}:address", "10.0.1.7:8080"}.
type Command []any

// What one Do can do. Redis does nothing else meanwhile, and its Lua has room for
// some 8,000 arguments to a command.
const (
	MaxCommands = 1024
	MaxWords    = 4096 // of one command, its name included
)

// commands carries out commands, each given as the number of its words and the
// words, and returns their replies.
var commands = NewScript(`
local replies, at = {}, 1
while at <= #ARGV do
	local last = at + tonumber(ARGV[at])
	replies[#replies + 1] = redis.call(unpack(ARGV, at + 1, last))
	at = last + 1
end
return replies`)

// Do carries out commands, all at once, if no later owner of the resource has
// written, and returns their replies: strings, int64s, slices of these, and nil.
// Keys are the keys that the commands use.
//
// If a later owner has written it fails with [leasehold.ErrStale], and nothing is
// done. If a command fails, those before it are done and those after it are not.
//
// It is one round trip. Where one command depends on another, use [Guard.Run].
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
