//go:build unix

package fenceredis_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/fenceredis"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
	"github.com/leasehold-dev/leasehold/internal/testkit/realservice"
	"github.com/redis/go-redis/v9"
)

// A world is a guard with its own fences and lists of lines.
type world struct {
	client redis.UniversalClient
	guard  fenceredis.Guard
	name   string
	do     bool // writes with Do instead of a script
}

// worlds numbers the worlds, for unique keys.
var worlds atomic.Int64

func newWorld(client redis.UniversalClient) world {
	name := fmt.Sprintf("world-%d", worlds.Add(1))
	return world{client: client, guard: fenceredis.Guard{Prefix: name + ":fence:"}, name: name}
}

var appending = fenceredis.NewScript("return redis.call('RPUSH', KEYS[1], ARGV[1]) -- and a comment")

func (w world) key(resource string) string { return fmt.Sprintf("{%s}:%s", resource, w.name) }

// Append is for fencetest.
func (w world) Append(ctx context.Context, resource string, g leasehold.Generation, line string) error {
	keys := []string{w.key(resource)}
	if w.do {
		_, err := w.guard.Do(ctx, w.client, resource, g, keys, fenceredis.Command{"RPUSH", keys[0], line})
		return err
	}
	return w.guard.Run(ctx, w.client, appending, resource, g, keys, line).Err()
}

// Lines is for fencetest.
func (w world) Lines(t testing.TB, resource string) []string {
	t.Helper()
	lines, err := w.client.LRange(t.Context(), w.key(resource), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) == 0 {
		return nil
	}
	return lines
}

func (w world) mustAppend(t testing.TB, resource string, g leasehold.Generation, line string) {
	t.Helper()
	if err := w.Append(t.Context(), resource, g, line); err != nil {
		t.Fatal(err)
	}
}

func closed(t testing.TB, client redis.UniversalClient) redis.UniversalClient {
	t.Cleanup(func() { _ = client.Close() }) // the server may have stopped
	return client
}

// TestRedis runs all tests with one Redis server.
func TestRedis(t *testing.T) {
	server := realservice.StartRedis(t)
	client := closed(t, redis.NewClient(&redis.Options{Addr: server.Addr}))
	t.Run("script", func(t *testing.T) {
		fencetest.Run(t, func(*testing.T) fencetest.Guarded { return newWorld(client) })
	})
	t.Run("commands", func(t *testing.T) {
		fencetest.Run(t, func(*testing.T) fencetest.Guarded {
			w := newWorld(client)
			w.do = true
			return w
		})
	})
	t.Run("with a TTL", func(t *testing.T) {
		fencetest.Run(t, func(*testing.T) fencetest.Guarded {
			w := newWorld(client)
			w.guard.TTL = fenceredis.MinTTL
			return w
		})
	})
	for name, test := range map[string]func(*testing.T, world){
		"results":          testResults,
		"script cache":     testScriptCache,
		"errors of script": testErrorsOfScript,
		"own words":        testOwnWords,
		"no error":         testNoError,
		"commands":         testCommands,
		"check":            testCheck,
		"expiry":           testExpiry,
		"alien key":        testAlienKey,
		"bad guard":        testBadGuard,
		"no permission":    testNoPermission,
		"replica":          testReplica,
		"full":             testFull,
		"busy":             testBusy,
		"connection lost":  testConnectionLost,
	} {
		t.Run(name, func(t *testing.T) { test(t, newWorld(client)) })
	}
	t.Run("away", func(t *testing.T) {
		server.Stop(t)
		testAway(t, newWorld(client))
	})
}

// TestCluster runs the tests in a cluster of one server, which rejects keys of several slots like any
// cluster.
func TestCluster(t *testing.T) {
	server := realservice.StartRedis(t, "--cluster-enabled", "yes")
	client := closed(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}}))
	node := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer node.Close() //nolint:errcheck // the test has ended
	if err := node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	awaitCluster(t, node)
	t.Run("suite", func(t *testing.T) {
		fencetest.Run(t, func(*testing.T) fencetest.Guarded { return newWorld(client) })
	})
	t.Run("slots", func(t *testing.T) { testSlots(t, newWorld(client)) })
}
