//go:build unix

package fenceredis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/fenceredis"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
	"github.com/redis/go-redis/v9"
)

// A script gets its own keys and arguments, and its result is returned.
func testResults(t *testing.T, w world) {
	for source, want := range map[string]any{
		"return {KEYS[1], KEYS[2], #KEYS}":                     []any{"{alice}1", "{alice}2", int64(2)},
		"return {ARGV[1], ARGV[2], #ARGV}":                     []any{"x", "7", int64(2)},
		"return 3":                                             int64(3),
		"return redis.status_reply('FINE')":                    "FINE",
		"return redis.call('GET', KEYS[1])":                    nil,
		"local n = 0\nfor i = 1, 10 do n = n + i end return n": int64(55),
		"": nil,
	} {
		got, err := w.guard.Run(t.Context(), w.client, fenceredis.NewScript(source), "alice", 7, []string{"{alice}1", "{alice}2"}, "x", 7).Result()
		if want == nil && err != redis.Nil || want != nil && err != nil { //nolint:errorlint // unwrapped
			t.Errorf("%s: %v", source, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", source, diff)
		}
	}
}

// Redis may flush its script cache at any time.
func testScriptCache(t *testing.T, w world) {
	w.mustAppend(t, "alice", 7, "a")
	if err := w.client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(t, "alice", 7, "b")
	w.mustAppend(t, "alice", 7, "c")
	if got := strings.Join(w.Lines(t, "alice"), " "); got != "a b c" {
		t.Errorf("lines %q", got)
	}
}

// Errors of a script are returned unchanged, with correct line numbers.
func testErrorsOfScript(t *testing.T, w world) {
	for source, want := range map[string]string{
		"return redis.error_reply('POOR no money')": "POOR no money",
		"\nerror('oops')": "user_script:2: oops",
		"redis.call('SET', KEYS[1], 'x')\nredis.call('INCR', KEYS[1])": "not an integer",
		"this is not Lua": "compiling",
	} {
		err := w.guard.Run(t.Context(), w.client, fenceredis.NewScript(source), "alice", 7, []string{"{alice}"}).Err()
		var reply redis.Error
		if !errors.As(err, &reply) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want a Redis error with %q", source, err, want)
		}
		fencetest.WantKind(t, err, leasehold.Other)
	}
	err := w.guard.Run(t.Context(), w.client, fenceredis.NewScript("#!lua flags=no-writes\nreturn 1"), "alice", 7, nil).Err()
	fencetest.WantKind(t, err, leasehold.ErrInvalid, "#!")
}

func testCommands(t *testing.T, w world) {
	name, count := "{alice}:name", "{alice}:count"
	got, err := w.guard.Do(t.Context(), w.client, "alice", 7, []string{name, count},
		fenceredis.Command{"SET", name, "Alice Liddell\r\n\x00"},
		fenceredis.Command{"INCRBY", count, 41},
		fenceredis.Command{"INCR", count},
		fenceredis.Command{"MGET", name, "{alice}:none"},
		fenceredis.Command{"GET", "{alice}:none"},
		fenceredis.Command{"PEXPIRE", name, time.Hour.Milliseconds()})
	want := []any{"OK", int64(41), int64(42), []any{"Alice Liddell\r\n\x00", nil}, nil, int64(1)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}

	// Redis has no rollback: the commands before the failed one are executed.
	_, err = w.guard.Do(t.Context(), w.client, "alice", 7, []string{name, count},
		fenceredis.Command{"INCR", count}, fenceredis.Command{"INCR", name}, fenceredis.Command{"INCR", count})
	fencetest.WantKind(t, err, leasehold.Other, "not an integer")
	if n, err := w.client.Get(t.Context(), count).Int(); err != nil || n != 43 {
		t.Errorf("the count is %d (%v), want 43", n, err)
	}

	long := make(fenceredis.Command, fenceredis.MaxWords+1)
	most := make(fenceredis.Command, fenceredis.MaxWords)
	for i := range most {
		most[i], long[i] = "x", "x"
	}
	most[0], most[1] = "RPUSH", "{alice}:most"
	if got, err := w.guard.Do(t.Context(), w.client, "alice", 7, []string{"{alice}:most"}, most); err != nil || got[0] != int64(fenceredis.MaxWords-2) {
		t.Errorf("the maximum number of words: %v (%v)", got, err)
	}
	for name, cmds := range map[string][]fenceredis.Command{
		"none":         nil,
		"an empty one": {{"PING"}, {}},
		"a long one":   {long},
		"too many":     make([]fenceredis.Command, fenceredis.MaxCommands+1),
	} {
		_, err := w.guard.Do(t.Context(), w.client, "alice", 7, nil, cmds...)
		if fencetest.WantKind(t, err, leasehold.ErrInvalid); t.Failed() {
			t.Fatal(name)
		}
	}
}

// A new owner stores its generation before it reads.
func testCheck(t *testing.T, w world) {
	w.mustAppend(t, "alice", 7, "a")
	if err := w.guard.Check(t.Context(), w.client, "alice", 8); err != nil {
		t.Fatal(err)
	}
	fencetest.WantKind(t, w.Append(t.Context(), "alice", 7, "late"), leasehold.ErrStale)
	fencetest.WantKind(t, w.guard.Check(t.Context(), w.client, "alice", 7), leasehold.ErrStale)
}

// A write extends the TTL of a fence, and a guard without a TTL removes it.
func testExpiry(t *testing.T, w world) {
	key := w.guard.Key("alice")
	left := func() time.Duration {
		t.Helper()
		d, err := w.client.PTTL(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	forEver := w.guard
	w.guard.TTL = 24 * time.Hour
	w.mustAppend(t, "alice", 8, "b")
	if d := left(); d <= 23*time.Hour || d > 24*time.Hour {
		t.Errorf("the TTL is %v, want 24 h", d)
	}
	if err := w.client.PExpire(t.Context(), key, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(t, "alice", 8, "b")
	if d := left(); d <= 23*time.Hour {
		t.Errorf("after a write the TTL is %v, want 24 h", d)
	}
	w.guard = forEver
	w.mustAppend(t, "alice", 8, "b")
	if d := left(); d >= 0 {
		t.Errorf("the TTL is %v, want none", d)
	}
	if err := w.client.Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(t, "alice", 7, "late") // without a fence the late write is accepted
}

// A key with another value is not changed.
func testAlienKey(t *testing.T, w world) {
	for name, set := range map[string]func(key string) error{
		"text":      func(key string) error { return w.client.Set(t.Context(), key, "hello", 0).Err() },
		"a number":  func(key string) error { return w.client.Set(t.Context(), key, 6, 0).Err() },
		"20 others": func(key string) error { return w.client.Set(t.Context(), key, "0000000000000000006x", 0).Err() },
		"a list":    func(key string) error { return w.client.RPush(t.Context(), key, "x").Err() },
	} {
		if err := set(w.guard.Key(name)); err != nil {
			t.Fatal(err)
		}
		err := w.Append(t.Context(), name, 7, "x")
		fencetest.WantKind(t, err, leasehold.ErrInvalid, "is not a fence", w.guard.Key(name))
		fencetest.WantUnwritten(t, err)
		if lines := w.Lines(t, name); lines != nil {
			t.Errorf("%s: written %q", name, lines)
		}
	}
}

func testBadGuard(t *testing.T, w world) {
	good := w.guard
	for name, c := range map[string]struct {
		spoil    func(*fenceredis.Guard)
		resource string
	}{
		"a brace in the prefix":     {func(g *fenceredis.Guard) { g.Prefix = "x{" }, "alice"},
		"another":                   {func(g *fenceredis.Guard) { g.Prefix = "}x" }, "alice"},
		"a short TTL":               {func(g *fenceredis.Guard) { g.TTL = time.Second }, "alice"},
		"a TTL from the past":       {func(g *fenceredis.Guard) { g.TTL = -time.Hour }, "alice"},
		"a resource with an end":    {func(*fenceredis.Guard) {}, "a}lice"},
		"a resource with a tag":     {func(*fenceredis.Guard) {}, "user:{alice}"},
		"a resource with a begin":   {func(*fenceredis.Guard) {}, "{alice"},
		"a resource of only braces": {func(*fenceredis.Guard) {}, "{}"},
	} {
		w.guard = good
		c.spoil(&w.guard)
		err := w.Append(t.Context(), c.resource, 7, "x")
		fencetest.WantKind(t, err, leasehold.ErrInvalid)
		if errors.Is(err, leasehold.ErrIndeterminate) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
