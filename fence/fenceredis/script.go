package fenceredis

import (
	"context"
	"strings"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	"github.com/redis/go-redis/v9"
)

// The guard's part of every script, around the application's. The first key is the fence. The
// first arguments are the generation, in 20 digits, and its TTL in milliseconds, 0 for none.
// Lua's numbers have 53 bits, too few for a generation: its halves are compared.
//
// Errors of the guard and of the application must be distinguishable, because only the latter
// may occur after a write. The guard returns its errors. Redis adds the position to errors
// that the application's part raises, and errors that it returns get a prefix, which
// translate removes.
//
// The application's part begins in the first line, so that line numbers in errors are
// correct. It ends with a newline, in case its last line is a comment.
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

// Prefixes of errors.
const (
	stale        = "LEASEHOLDSTALE" // followed by the stored generation
	alien        = "LEASEHOLDALIEN" // followed by the key that is not a fence
	applications = "LEASEHOLDAPP"   // followed by the error of the application's part
)

// A Script is a guarded Lua script. It is immutable and safe for concurrent use.
type Script struct {
	source string
	hash   string
	flags  bool // the application's part begins with #!
}

// NewScript returns a script. Its KEYS and ARGV are the keys and args of [Guard.Run], and its
// result is that of Run, as without the guard.
//
// A source that begins with #! is an error of Run: the flags would also apply to the guard's
// part.
func NewScript(source string) *Script {
	whole := before + source + after
	return &Script{whole, redis.NewScript(whole).Hash(), strings.HasPrefix(source, "#!")}
}

// Run runs a script if no later owner of the resource has written, and stores the generation.
// If a later owner has written, the error of the command is [leasehold.ErrStale], and the
// script was not run.
//
// If Redis could not run the script, the error has a kind; it is [leasehold.ErrIndeterminate]
// if the script may have run. Errors of the script itself, and [redis.Nil], are returned
// unchanged. Redis has no rollback: writes of a script before its error remain.
//
// It costs one round trip, or two if Redis has not cached the script.
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
	cmd.SetFirstKeyPos(firstKey)          // selects the server in a cluster
	_ = client.Process(ctx, noRetry{cmd}) // the command has the error
	return cmd
}

// noRetry is a command that go-redis does not retry without a response: it may have been
// executed.
type noRetry struct{ *redis.Cmd }

// NoRetry is for go-redis.
func (noRetry) NoRetry() bool { return true }
