package fenceredis

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"github.com/redis/go-redis/v9"
)

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
