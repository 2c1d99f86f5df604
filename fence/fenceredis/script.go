package fenceredis

import (
	"context"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"github.com/redis/go-redis/v9"
)

// The guard's part of every script, around the application's. The first key is the
// fence. The first arguments are the generation, in 20 digits, and for how many
// milliseconds to remember it, 0 for ever. A number of Lua has 53 bits, too few for
// a generation: so its halves are compared.
//
// Whose an error is must be plain, since only the application's can come after a
// write. The guard's are returned. To the application's Redis adds where they were
// raised, and those that it returned get a mark, which translate takes off again.
//
// The application's part begins in the first line, so that Redis counts its lines
// as its author does. A line of its own ends it, in case it ends with a comment.
const (
	before = `local application = function(KEYS, ARGV) `
	after  = `
end
local fence, generation, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])
local known = redis.pcall('GET', fence)
if type(known) == 'table' then
	if string.find(known.err, 'WRONGTYPE', 1, true) then known = '' else return known end
end
if known then
	if #known ~= 20 or string.find(known, '%D') then
		return redis.error_reply('` + alien + ` ' .. fence)
	end
	local high, low = tonumber(string.sub(known, 1, 10)), tonumber(string.sub(known, 11))
	local ours, rest = tonumber(string.sub(generation, 1, 10)), tonumber(string.sub(generation, 11))
	if high > ours or (high == ours and low > rest) then
		return redis.error_reply('` + stale + ` ' .. known)
	end
end
local raised
if ttl > 0 then
	raised = redis.pcall('SET', fence, generation, 'PX', ttl)
elseif known == generation then
	raised = redis.pcall('PERSIST', fence)
else
	raised = redis.pcall('SET', fence, generation)
end
if type(raised) == 'table' and raised.err then return raised end
local keys, args = {}, {}
for i = 2, #KEYS do keys[i - 1] = KEYS[i] end
for i = 3, #ARGV do args[i - 2] = ARGV[i] end
local result = application(keys, args)
if type(result) == 'table' and type(result.err) == 'string' then
	result.err = '` + applications + ` ' .. result.err
end
return result`
)

// How the guard's part says no, and that it was not the guard's part.
const (
	stale        = "LEASEHOLDSTALE" // and the generation that is known
	alien        = "LEASEHOLDALIEN" // and the key that is no fence
	applications = "LEASEHOLDAPP"   // and the error that the application returned
)

// A Script is a script in Lua that runs only if a lease allows it. It is made
// once, and may be run by many goroutines at once.
type Script struct {
	source string
	hash   string
	flags  bool // the application's part begins with #!, which would have to be first
}

// NewScript makes a script. In it KEYS and ARGV are what [Guard.Run] is given, and
// what it returns is what Run returns: all is as without the guard.
//
// A source that begins with #! is refused when it is run: that line would speak for
// the guard's part, too.
func NewScript(source string) *Script {
	whole := before + source + after
	return &Script{whole, redis.NewScript(whole).Hash(), strings.HasPrefix(source, "#!")}
}

// Run runs a script if no later owner of the resource has written, and remembers
// the generation. If one has, the command that it returns has an error of kind
// [leasehold.ErrStale], and nothing of the script was run.
//
// If Redis could not run it, the error has a kind, and is [leasehold.ErrIndeterminate] if it may
// have been run. Errors of the script itself are returned as they are, and so is
// [redis.Nil]. Redis undoes nothing: what a script wrote before it failed is
// written.
//
// It is one round trip, or two if Redis has not seen the script before.
func (g Guard) Run(ctx context.Context, client redis.UniversalClient, script *Script, resource string, generation leasehold.Generation, keys []string, args ...any) *redis.Cmd {
	if err := g.validate(ctx, script, resource, generation); err != nil {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(err)
		return cmd
	}
	words := []any{1 + len(keys), g.Key(resource)}
	for _, key := range keys {
		words = append(words, key)
	}
	words = append(words, token.Format(generation), g.TTL.Milliseconds())
	words = append(words, args...)
	cmd := send(ctx, client, append([]any{"evalsha", script.hash}, words...))
	if unseen(cmd.Err()) {
		cmd = send(ctx, client, append([]any{"eval", script.source}, words...))
	}
	if err := cmd.Err(); err != nil {
		cmd.SetErr(translate(resource, generation, err))
	}
	return cmd
}

func send(ctx context.Context, client redis.UniversalClient, words []any) *redis.Cmd {
	const firstKey = 3
	cmd := redis.NewCmd(ctx, words...)
	cmd.SetFirstKeyPos(firstKey)       // by which a cluster finds the server
	_ = client.Process(ctx, once{cmd}) // the command has the error
	return cmd
}

// once is a command that go-redis does not send again if there was no answer. It
// may have been carried out, and to do so twice is more than the caller asked for.
type once struct{ *redis.Cmd }

// NoRetry is for go-redis.
func (once) NoRetry() bool { return true }
