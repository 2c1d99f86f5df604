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

// The application's comparisons select its branch, and the fence decides whether it is executed.
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
	// Reads in Else are guarded: no earlier owner can write after them.
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

// A resource whose fence is deleted is no longer protected.
func testForgotten(t *testing.T, w world) {
	w.mustAppend(t, 8, "b")
	if _, err := w.client.Delete(t.Context(), w.guard.Key("alice")); err != nil {
		t.Fatal(err)
	}
	w.mustAppend(t, 7, "late")
	w.wantLines(t, "b late")
}

// remover is an etcd in which another client deletes the fence whenever it is created.
type remover struct {
	clientv3.KV
	key  string
	txns int
}

func (r *remover) Txn(ctx context.Context) clientv3.Txn {
	r.txns++
	_, _ = r.Delete(ctx, r.key) // it may be missing
	return r.KV.Txn(ctx)
}

func testRemoved(t *testing.T, w world) {
	kv := &remover{KV: w.client, key: w.guard.Key("alice")}
	err := w.guard.Check(t.Context(), kv, "alice", 7)
	fencetest.WantKind(t, err, leasehold.ErrUnavailable, "keeps deleting")
	fencetest.WantUnwritten(t, err)
	if kv.txns != 6 {
		t.Errorf("%d transactions, want 6", kv.txns)
	}
}

// overtaken is an etcd in which another owner creates the fence right after it was found missing.
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

// A fence that another owner has created meanwhile is not overwritten.
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

// A key with another value is not changed.
func testAlienKey(t *testing.T, w world) {
	for _, value := range []string{
		"hello", "7", "0000000000000000000x", "99999999999999999999",
		"", "0", "\"json\"", "-5", "+7", "\x00", "0000000000000000000", "0000000000000000000/",
	} {
		if _, err := w.client.Put(t.Context(), w.guard.Key("alice"), value); err != nil {
			t.Fatal(err)
		}
		err := w.Append(t.Context(), "alice", 7, "x")
		fencetest.WantKind(t, err, leasehold.ErrInvalid, "is not a fence", w.guard.Key("alice"))
		fencetest.WantUnwritten(t, err)
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
		t.Errorf("the maximum number of operations: %v", err)
	}
	wantRejected(t, commit(127), leasehold.ErrInvalid, "too many operations")
	_, err := w.guard.Txn(t.Context(), w.client, "alice", 7).Then(clientv3.OpPut(w.name, strings.Repeat("x", 1600<<10))).Commit()
	wantRejected(t, err, leasehold.ErrInvalid, "too large")
}

// wantRejected checks the kind of an error that means that nothing was written.
func wantRejected(t *testing.T, err error, kind leasehold.Kind, want string) {
	t.Helper()
	fencetest.WantKind(t, err, kind, "nothing was written", want)
	fencetest.WantUnwritten(t, err)
}

func testBadOperations(t *testing.T, w world) {
	commit := func(ops ...clientv3.Op) error {
		_, err := w.guard.Txn(t.Context(), w.client, "alice", 9).Then(ops...).Commit()
		return err
	}
	wantRejected(t, commit(clientv3.OpPut(w.name, "1"), clientv3.OpPut(w.name, "2")), leasehold.ErrInvalid, "duplicate key")
	wantRejected(t, commit(clientv3.OpPut(w.guard.Key("alice"), "1")), leasehold.ErrInvalid, "duplicate key")
	wantRejected(t, commit(clientv3.OpPut(w.name, "1", clientv3.WithLease(4711))), leasehold.ErrNotFound, "lease not found")
	wantRejected(t, commit(clientv3.OpPut(w.name, "1"), clientv3.OpGet(w.name, clientv3.WithRev(1<<40))), leasehold.ErrInvalid, "future revision")
	w.mustAppend(t, 8, "a") // the generation was not stored
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

// A user without permission for the fences.
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
	wantRejected(t, w.Append(t.Context(), "alice", 7, "x"), leasehold.ErrInvalid, "permission denied")
	w = newWorld(connect(t, server, "root"))
	w.mustAppend(t, 7, "a")
}

// The error of the write that exceeds etcd's quota is indeterminate.
func TestFull(t *testing.T) {
	server, _ := startEtcd(t, func(c *embed.Config) {
		c.QuotaBackendBytes = 256 << 10
		c.BackendBatchLimit = 1 // so that its size is current
	})
	w := newWorld(connect(t, server, ""))
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = w.Append(t.Context(), "alice", 7, fmt.Sprint(i, strings.Repeat("x", 4<<10)))
	}
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate, "may have been written", "space exceeded")
}

// Etcd is stopped.
func TestAway(t *testing.T) {
	server, stop := startEtcd(t, func(*embed.Config) {})
	w := newWorld(connect(t, server, ""))
	w.mustAppend(t, 7, "a")
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // the client waits until then
	defer cancel()
	err := w.Append(ctx, "alice", 7, "b")
	fencetest.WantKind(t, err, leasehold.ErrIndeterminate)
	fencetest.WantKind(t, w.Append(ctx, "", 7, "b"), leasehold.ErrInvalid)
}
