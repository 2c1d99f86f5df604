//go:build unix

package fenceredis_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/fenceredis"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
	"github.com/redis/go-redis/v9"
)

// patience is the timeout of operations that take milliseconds.
const patience = 30 * time.Second

func addrOf(w world) string { return w.client.(*redis.Client).Options().Addr }

// wantRejected checks the kind of an error that means that nothing was written.
func wantRejected(t *testing.T, err error, kind leasehold.Kind, text string) {
	t.Helper()
	fencetest.WantKind(t, err, kind, "nothing was written", text)
	fencetest.WantUnwritten(t, err)
}

func testNoPermission(t *testing.T, w world) {
	stranger := func(rules ...string) world {
		set := append([]any{"ACL", "SETUSER", "stranger", "reset", "on", ">secret"}, toAny(rules)...)
		if err := w.client.Do(t.Context(), set...).Err(); err != nil {
			t.Fatal(err)
		}
		w := w
		w.client = closed(t, redis.NewClient(&redis.Options{Addr: addrOf(w), Username: "stranger", Password: "secret"}))
		return w
	}
	wantRejected(t, stranger("+@all", "-eval", "-evalsha", "~*").Append(t.Context(), "alice", 7, "x"), leasehold.ErrInvalid, "NOPERM")
	wantRejected(t, stranger("+@all", "~{*").Append(t.Context(), "alice", 7, "x"), leasehold.ErrInvalid, "NOPERM")
	// In the application's part it is the application's error.
	err := stranger("+@all", "-rpush", "~*").Append(t.Context(), "alice", 7, "x")
	fencetest.WantKind(t, err, leasehold.Other)

	w.client = closed(t, redis.NewClient(&redis.Options{Addr: addrOf(w), Username: "stranger", Password: "guess"}))
	wantRejected(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrInvalid, "WRONGPASS")
}

func toAny(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

func testReplica(t *testing.T, w world) {
	w.mustAppend(t, "alice", 7, "a")
	if err := w.client.SlaveOf(t.Context(), "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.client.SlaveOf(t.Context(), "NO", "ONE").Err(); err != nil {
			t.Error(err)
		}
	}()
	wantRejected(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrUnavailable, "READONLY")
	wantRejected(t, w.Append(t.Context(), "alice", 8, "x"), leasehold.ErrUnavailable, "READONLY")
}

func testFull(t *testing.T, w world) {
	if err := w.client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
			t.Error(err)
		}
	}()
	wantRejected(t, w.Append(t.Context(), "alice", 8, "x"), leasehold.ErrLimit, "OOM")
}

// While a script exceeds its time limit, Redis rejects others.
func testBusy(t *testing.T, w world) {
	if err := w.client.ConfigSet(t.Context(), "busy-reply-threshold", "1").Err(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.client.ConfigSet(t.Context(), "busy-reply-threshold", "5000").Err(); err != nil {
			t.Error(err)
		}
	}()
	long := make(chan error, 1)
	go func() {
		long <- closed(t, redis.NewClient(&redis.Options{Addr: addrOf(w), ReadTimeout: -1})).
			Eval(t.Context(), "while true do end", nil).Err()
	}()
	await(t, "a busy server", func() bool { return redis.HasErrorPrefix(w.client.Get(t.Context(), "x").Err(), "BUSY") })
	wantRejected(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrUnavailable, "BUSY")
	if err := w.client.ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-long
	w.mustAppend(t, "alice", 6, "a")
}

// await polls until a condition is true.
func await(t testing.TB, what string, try func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !try() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("timeout: %s", what)
		}
	}
}

// A connection that breaks before the response: the error is indeterminate, and the script is not
// sent again.
func testConnectionLost(t *testing.T, w world) {
	w.mustAppend(t, "alice", 7, "a") // so that the script is cached
	direct := w
	dials := 0
	w.client = closed(t, redis.NewClient(&redis.Options{
		Addr:     addrOf(direct),
		Protocol: 2,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &brokenConn{Conn: conn}, err
		},
	}))
	err := w.Append(t.Context(), "alice", 7, "b")
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate, "may have been written")
	if !errors.Is(err, leasehold.ErrIndeterminate) || !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want io.EOF and ErrIndeterminate", err)
	}
	await(t, "the write without a response", func() bool { return len(direct.Lines(t, "alice")) > 1 })
	if got := strings.Join(direct.Lines(t, "alice"), " "); got != "a b" || dials != 1 {
		t.Errorf("lines %q over %d connections, want it sent once", got, dials)
	}
}

// brokenConn is a connection that breaks after a script was sent.
type brokenConn struct {
	net.Conn
	gone bool
}

func (d *brokenConn) Write(b []byte) (int, error) {
	d.gone = d.gone || strings.Contains(string(b), "evalsha")
	return d.Conn.Write(b)
}

func (d *brokenConn) Read(b []byte) (int, error) {
	if d.gone {
		return 0, io.EOF
	}
	return d.Conn.Read(b)
}

func testAway(t *testing.T, w world) {
	w.client = closed(t, redis.NewClient(&redis.Options{Addr: addrOf(w)})) // without open connections
	wantRejected(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrUnavailable, "refused")
	fencetest.WantKind(t, w.Append(t.Context(), "", 7, "x"), leasehold.ErrInvalid)
	if err := w.client.Close(); err != nil {
		t.Fatal(err)
	}
	wantRejected(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrUnavailable, "closed")
}

// A call to a server that does not respond ends with the context.
func TestHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing was written
	client := closed(t, redis.NewClient(&redis.Options{Addr: listener.Addr().String(), ContextTimeoutEnabled: true}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = fenceredis.Guard{}.Check(ctx, client, "alice", 7)
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate)
}

func awaitCluster(t *testing.T, node *redis.Client) {
	t.Helper()
	await(t, "the cluster", func() bool {
		info, err := node.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
}

// Keys in another slot than the resource's are rejected; those with its tag are in its slot.
func testSlots(t *testing.T, w world) {
	two := fenceredis.NewScript("redis.call('SET', KEYS[1], 'x') return redis.call('SET', KEYS[2], 'x')")
	run := func(keys ...string) error {
		return w.guard.Run(t.Context(), w.client, two, "alice", 7, keys).Err()
	}
	if err := run("{alice}:1", "another:{alice}"); err != nil {
		t.Error(err)
	}
	wantRejected(t, run("{alice}:1", "{bob}:2"), leasehold.ErrInvalid, "CROSSSLOT")
	wantRejected(t, run("alice:1", "alice:2"), leasehold.ErrInvalid, "CROSSSLOT")
}
