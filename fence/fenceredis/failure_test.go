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

// patience is how long something may take that should take milliseconds. It is
// spent only when a test fails.
const patience = 30 * time.Second

func addrOf(w world) string { return w.client.(*redis.Client).Options().Addr }

// wantRefused wants a kind, and that it is known that nothing was written.
func wantRefused(t *testing.T, err error, kind leasehold.Kind, says string) {
	t.Helper()
	fencetest.WantKind(t, err, kind, "nothing was written", says)
	fencetest.WantKnown(t, err)
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
	wantRefused(t, stranger("+@all", "-eval", "-evalsha", "~*").Append(t.Context(), "alice", 7, "x"), leasehold.ErrInvalid, "NOPERM")
	wantRefused(t, stranger("+@all", "~{*").Append(t.Context(), "alice", 7, "x"), leasehold.ErrInvalid, "NOPERM")
	// In the application's part it is the application's error.
	err := stranger("+@all", "-rpush", "~*").Append(t.Context(), "alice", 7, "x")
	fencetest.WantKind(t, err, leasehold.Other)

	w.client = closed(t, redis.NewClient(&redis.Options{Addr: addrOf(w), Username: "stranger", Password: "guess"}))
	wantRefused(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrInvalid, "WRONGPASS")
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
	wantRefused(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrUnavailable, "READONLY")
	wantRefused(t, w.Append(t.Context(), "alice", 8, "x"), leasehold.ErrUnavailable, "READONLY")
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
	wantRefused(t, w.Append(t.Context(), "alice", 8, "x"), leasehold.ErrLimit, "OOM")
}

// While one script runs for too long, Redis refuses others.
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
	wantRefused(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrUnavailable, "BUSY")
	if err := w.client.ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-long
	w.mustAppend(t, "alice", 6, "a")
}

// await asks again and again until something is true.
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
			t.Fatalf("waiting in vain for %s", what)
		}
	}
}

// A connection that ends before the answer: it may have been written, it is said
// so, and it is not sent again.
func testConnectionLost(t *testing.T, w world) {
	w.mustAppend(t, "alice", 7, "a") // so that the script is known
	direct := w
	dials := 0
	w.client = closed(t, redis.NewClient(&redis.Options{
		Addr:     addrOf(direct),
		Protocol: 2,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials++
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &deaf{Conn: conn}, err
		},
	}))
	err := w.Append(t.Context(), "alice", 7, "b")
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate, "may have been written")
	if !errors.Is(err, leasehold.ErrIndeterminate) || !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want the end of the connection, and that the outcome is unknown", err)
	}
	await(t, "the write that nobody has heard of", func() bool { return len(direct.Lines(t, "alice")) > 1 })
	if got := strings.Join(direct.Lines(t, "alice"), " "); got != "a b" || dials != 1 {
		t.Errorf("lines %q over %d connections, want it sent once", got, dials)
	}
}

// deaf is a connection that ends when a script was sent.
type deaf struct {
	net.Conn
	gone bool
}

func (d *deaf) Write(b []byte) (int, error) {
	d.gone = d.gone || strings.Contains(string(b), "evalsha")
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	if d.gone {
		return 0, io.EOF
	}
	return d.Conn.Read(b)
}

func testAway(t *testing.T, w world) {
	w.client = closed(t, redis.NewClient(&redis.Options{Addr: addrOf(w)})) // with no connection from before
	wantRefused(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrUnavailable, "refused")
	fencetest.WantKind(t, w.Append(t.Context(), "", 7, "x"), leasehold.ErrInvalid)
	if err := w.client.Close(); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrUnavailable, "closed")
}

// A server that does not answer is waited for as long as the context says.
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

// Keys that are not in the slot of the resource are refused, and those that have
// its tag are in it.
func testSlots(t *testing.T, w world) {
	two := fenceredis.NewScript("redis.call('SET', KEYS[1], 'x') return redis.call('SET', KEYS[2], 'x')")
	run := func(keys ...string) error {
		return w.guard.Run(t.Context(), w.client, two, "alice", 7, keys).Err()
	}
	if err := run("{alice}:1", "another:{alice}"); err != nil {
		t.Error(err)
	}
	wantRefused(t, run("{alice}:1", "{bob}:2"), leasehold.ErrInvalid, "CROSSSLOT")
	wantRefused(t, run("alice:1", "alice:2"), leasehold.ErrInvalid, "CROSSSLOT")
}
