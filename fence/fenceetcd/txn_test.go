package fenceetcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/fenceetcd"
	"github.com/leasehold-dev/leasehold/fence/internal/fencetest"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// The application's comparisons decide between its own branches, and the fence
// whether there is anything to decide.
func testOwnComparisons(t *testing.T, w world) {
	key := w.name + "address"
	set := func(g leasehold.Generation, from, to string) (*clientv3.TxnResponse, error) {
		return w.guard.Txn(t.Context(), w.client, "alice", g).
			If(clientv3.Compare(clientv3.Value(key), "=", from)).
			Then(clientv3.OpPut(key, to, clientv3.WithPrevKV()), clientv3.OpGet(key)).
			Else(clientv3.OpGet(key)).
			Commit()
	}
	if _, err := w.client.Put(t.Context(), key, "a"); err != nil {
		t.Fatal(err)
	}
	resp, err := set(7, "a", "b")
	if err != nil || !resp.Succeeded || len(resp.Responses) != 2 || resp.Header.GetRevision() == 0 {
		t.Fatalf("%v (%v), want Then's two responses and a revision", resp, err)
	}
	if before := resp.Responses[0].GetResponsePut().PrevKv.Value; string(before) != "a" {
		t.Errorf("it was %q before, want a", before)
	}
	resp, err = set(9, "a", "c")
	if err != nil || resp.Succeeded || len(resp.Responses) != 1 {
		t.Fatalf("%v (%v), want Else's response", resp, err)
	}
	if now := resp.Responses[0].GetResponseRange().Kvs[0].Value; string(now) != "b" {
		t.Errorf("it is %q, want b", now)
	}
	// What Else has read may be acted upon: nobody earlier writes any more.
	_, err = set(8, "b", "d")
	fencetest.WantKind(t, err, leasehold.ErrStale, "generation 8 is older than 9")
}

func testCheck(t *testing.T, w world) {
	w.mustAppend(t, 7, "a")
	if err := w.guard.Check(t.Context(), w.client, "alice", 8); err != nil {
		t.Fatal(err)
	}
	fencetest.WantKind(t, w.Append(t.Context(), "alice", 7, "late"), leasehold.ErrStale)
	fencetest.WantKind(t, w.guard.Check(t.Context(), w.client, "alice", 7), leasehold.ErrStale)
	w.wantLines(t, "a")
}

// What is forgotten is no longer protected.
func testForgotten(t *testing.T, w world) {
	w.mustAppend(t, 8, "b")
	if _, err := w.client.Delete(t.Context(), w.guard.Key("alice")); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(t, 7, "late")
	w.wantLines(t, "b late")
}

// remover is an etcd in which somebody removes the fence whenever it was created.
type remover struct {
	clientv3.KV
	key  string
	txns int
}

func (r *remover) Txn(ctx context.Context) clientv3.Txn {
	r.txns++
	_, _ = r.Delete(ctx, r.key) // it is there or not
	return r.KV.Txn(ctx)
}

func testRemoved(t *testing.T, w world) {
	kv := &remover{KV: w.client, key: w.guard.Key("alice")}
	err := w.guard.Check(t.Context(), kv, "alice", 7)
	fencetest.WantKind(t, err, leasehold.ErrUnavailable, "again and again")
	fencetest.WantKnown(t, err)
	if kv.txns != 6 {
		t.Errorf("%d transactions, want 6", kv.txns)
	}
}

// overtaken is an etcd in which another owner is first, right after it was found that
// there is no fence.
type overtaken struct {
	clientv3.KV
	overtake func()
	txns     int
}

func (o *overtaken) Txn(ctx context.Context) clientv3.Txn {
	if o.txns++; o.txns == 2 {
		o.overtake()
	}
	return o.KV.Txn(ctx)
}

// The fence that the other made meanwhile is not made again.
func testOvertaken(t *testing.T, w world) {
	kv := &overtaken{KV: w.client, overtake: func() { w.mustAppend(t, 9, "a") }}
	err := w.guard.Check(t.Context(), kv, "alice", 7)
	fencetest.WantKind(t, err, leasehold.ErrStale, "generation 7 is older than 9")
	fencetest.WantKind(t, w.Append(t.Context(), "alice", 8, "late"), leasehold.ErrStale)
	w.wantLines(t, "a")
	if kv.txns != 3 {
		t.Errorf("%d transactions, want 3", kv.txns)
	}
}

// A key that is something else is left alone.
func testAlienKey(t *testing.T, w world) {
	for _, value := range []string{
		"hello", "7", "0000000000000000000x", "99999999999999999999",
		"", "0", "\"json\"", "-5", "+7", "\x00", "0000000000000000000", "0000000000000000000/",
	} {
		if _, err := w.client.Put(t.Context(), w.guard.Key("alice"), value); err != nil {
			t.Fatal(err)
		}
		err := w.Append(t.Context(), "alice", 7, "x")
		fencetest.WantKind(t, err, leasehold.ErrInvalid, "is no fence", w.guard.Key("alice"))
		fencetest.WantKnown(t, err)
		resp, err := w.client.Get(t.Context(), w.guard.Key("alice"))
		if err != nil || string(resp.Kvs[0].Value) != value {
			t.Errorf("%q became %v (%v)", value, resp, err)
		}
	}
	w.wantLines(t, "")
}

func testLimits(t *testing.T, w world) {
	commit := func(n int) error {
		var ops []clientv3.Op
		for i := range n {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s%d", w.name, i), ""))
		}
		_, err := w.guard.Txn(t.Context(), w.client, "alice", 7).Then(ops...).Commit()
		return err
	}
	if err := commit(126); err != nil {
		t.Errorf("as many operations as there may be: %v", err)
	}
	wantRefused(t, commit(127), leasehold.ErrInvalid, "too many operations")
	_, err := w.guard.Txn(t.Context(), w.client, "alice", 7).Then(clientv3.OpPut(w.name, strings.Repeat("x", 1600<<10))).Commit()
	wantRefused(t, err, leasehold.ErrInvalid, "too large")
}

// wantRefused wants a kind, and that it is known that nothing was written.
func wantRefused(t *testing.T, err error, kind leasehold.Kind, says string) {
	t.Helper()
	fencetest.WantKind(t, err, kind, "nothing was written", says)
	fencetest.WantKnown(t, err)
}

func testBadOperations(t *testing.T, w world) {
	commit := func(ops ...clientv3.Op) error {
		_, err := w.guard.Txn(t.Context(), w.client, "alice", 9).Then(ops...).Commit()
		return err
	}
	wantRefused(t, commit(clientv3.OpPut(w.name, "1"), clientv3.OpPut(w.name, "2")), leasehold.ErrInvalid, "duplicate key")
	wantRefused(t, commit(clientv3.OpPut(w.guard.Key("alice"), "1")), leasehold.ErrInvalid, "duplicate key")
	wantRefused(t, commit(clientv3.OpPut(w.name, "1", clientv3.WithLease(4711))), leasehold.ErrNotFound, "lease not found")
	wantRefused(t, commit(clientv3.OpPut(w.name, "1"), clientv3.OpGet(w.name, clientv3.WithRev(1<<40))), leasehold.ErrInvalid, "future revision")
	w.mustAppend(t, 8, "a") // not even the generation was
}

func testDefaultPrefix(t *testing.T, w world) {
	if err := (fenceetcd.Guard{}).Check(t.Context(), w.client, "alice", 7); err != nil {
		t.Fatal(err)
	}
	resp, err := w.client.Get(t.Context(), "leasehold/fence/alice")
	if err != nil || len(resp.Kvs) != 1 || string(resp.Kvs[0].Value) != "00000000000000000007" {
		t.Errorf("%v (%v)", resp, err)
	}
}

// A user who may not touch the fences.
func TestNoPermission(t *testing.T) {
	server, _ := startEtcd(t, func(*embed.Config) {})
	root := connect(t, server, "")
	for _, step := range []func() error{
		func() error { _, err := root.UserAdd(t.Context(), "root", "root"); return err },
		func() error { _, err := root.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := root.UserAdd(t.Context(), "stranger", "stranger"); return err },
		func() error { _, err := root.AuthEnable(t.Context()); return err },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(connect(t, server, "stranger"))
	wantRefused(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrInvalid, "permission denied")
	w = newWorld(connect(t, server, "root"))
	w.mustAppend(t, 7, "a")
}

// Etcd may carry out the write that fills it up, and says no nonetheless.
func TestFull(t *testing.T) {
	server, _ := startEtcd(t, func(c *embed.Config) {
		c.QuotaBackendBytes = 256 << 10
		c.BackendBatchLimit = 1 // so that it knows its size
	})
	w := newWorld(connect(t, server, ""))
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = w.Append(t.Context(), "alice", 7, fmt.Sprint(i, strings.Repeat("x", 4<<10)))
	}
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate, "may have been written", "space exceeded")
}

// Etcd goes away.
func TestAway(t *testing.T) {
	server, stop := startEtcd(t, func(*embed.Config) {})
	w := newWorld(connect(t, server, ""))
	w.mustAppend(t, 7, "a")
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // for which the client waits
	defer cancel()
	err := w.Append(ctx, "alice", 7, "b")
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate)
	fencetest.WantKind(t, w.Append(ctx, "", 7, "b"), leasehold.ErrInvalid)
}
