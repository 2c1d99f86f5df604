package fenceetcd_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/fenceetcd"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// patience is the timeout of operations that are normally fast.
const patience = 30 * time.Second

// startEtcd starts a real etcd in this process, on the loopback interface. It is stopped at the end
// of the test at the latest.
func startEtcd(t testing.TB, change func(*embed.Config)) (server *embed.Etcd, stop func()) {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.UnsafeNoFsync = true
	cfg.ListenClientUrls, cfg.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}, nil
	change(cfg)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(server.Close)
	t.Cleanup(stop)
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		t.Fatal(err)
	case <-time.After(patience):
		t.Fatalf("etcd is not ready in %v", patience)
	}
	return server, stop
}

// connect returns a client, authenticated if a name is given.
func connect(t testing.TB, server *embed.Etcd, user string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{server.Clients[0].Addr().String()}, DialTimeout: patience,
		Username: user, Password: user, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // the server may have stopped
	return client
}

// A world is a guard with its own fences and lines.
type world struct {
	client *clientv3.Client
	guard  fenceetcd.Guard
	name   string
}

// worlds numbers the worlds, for unique keys.
var worlds atomic.Int64

func newWorld(client *clientv3.Client) world {
	name := fmt.Sprintf("world-%d/", worlds.Add(1))
	return world{client, fenceetcd.Guard{Prefix: name + "fence/"}, name}
}

// lines is the prefix of the lines of a resource, which may contain any character.
func (w world) lines(resource string) string { return fmt.Sprintf("%slines/%x/", w.name, resource) }

// Append is for fencetest. Lines are unique, and ordered by creation.
func (w world) Append(ctx context.Context, resource string, g leasehold.Generation, line string) error {
	_, err := w.guard.Txn(ctx, w.client, resource, g).Then(clientv3.OpPut(w.lines(resource)+line, line)).Commit()
	return err
}

// Lines is for fencetest.
func (w world) Lines(t testing.TB, resource string) (lines []string) {
	t.Helper()
	resp, err := w.client.Get(t.Context(), w.lines(resource), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range resp.Kvs {
		lines = append(lines, string(kv.Value))
	}
	return lines
}

func (w world) mustAppend(t testing.TB, g leasehold.Generation, line string) {
	t.Helper()
	if err := w.Append(t.Context(), "alice", g, line); err != nil {
		t.Fatal(err)
	}
}

func (w world) wantLines(t testing.TB, want string) {
	t.Helper()
	if got := strings.Join(w.Lines(t, "alice"), " "); got != want {
		t.Errorf("lines %q, want %q", got, want)
	}
}

// TestEtcd runs the tests that can share an etcd.
func TestEtcd(t *testing.T) {
	server, _ := startEtcd(t, func(*embed.Config) {})
	client := connect(t, server, "")
	fencetest.Run(t, func(*testing.T) fencetest.Guarded { return newWorld(client) })
	for name, test := range map[string]func(*testing.T, world){
		"own comparisons": testOwnComparisons,
		"check":           testCheck,
		"forgotten":       testForgotten,
		"removed":         testRemoved,
		"overtaken":       testOvertaken,
		"alien key":       testAlienKey,
		"limits":          testLimits,
		"bad operations":  testBadOperations,
		"default prefix":  testDefaultPrefix,
	} {
		t.Run(name, func(t *testing.T) { test(t, newWorld(client)) })
	}
}
