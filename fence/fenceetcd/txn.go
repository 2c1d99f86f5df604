package fenceetcd

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Txn returns a transaction that a lease allows. It is used like one of the client:
// If, Then and Else add to it, and Commit carries it out. If a later owner of the
// resource has written, Commit fails with [leasehold.ErrStale], and neither Then nor
// Else was carried out. If not, the response is that of the application's own
// transaction: Succeeded says whether its comparisons held. In both cases the
// generation is known from then on, so that what Else reads may be acted upon.
//
// If etcd could not carry it out, the error has a kind, and is [leasehold.ErrIndeterminate] if it
// may have been carried out nonetheless. It is not sent again. The client waits for a
// connection for as long as the context allows: let that have a deadline.
//
// It has the limits of a transaction of etcd, less the two operations of the guard:
// unless the server was told otherwise, 126 in each of If, Then and Else, and
// 1.5 MiB. The key of the fence must not be among those that it writes. Its methods
// are for one goroutine, and Commit is called once.
func (g Guard) Txn(ctx context.Context, kv clientv3.KV, resource string, generation leasehold.Generation) clientv3.Txn {
	return &txn{ctx: ctx, kv: kv, key: g.Key(resource), resource: resource, generation: generation}
}

// A txn gathers what the application wants.
type txn struct {
	ctx        context.Context
	kv         clientv3.KV
	key        string // of the fence
	resource   string
	generation leasehold.Generation

	comparisons        []clientv3.Cmp
	success, otherwise []clientv3.Op
}

func (t *txn) If(comparisons ...clientv3.Cmp) clientv3.Txn {
	t.comparisons = append(t.comparisons, comparisons...)
	return t
}

func (t *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.success = append(t.success, ops...)
	return t
}

func (t *txn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.otherwise = append(t.otherwise, ops...)
	return t
}

// commitAttempts is how often Commit tries: once more than it takes when there is no
// fence yet.
const commitAttempts = 3

func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	if err := token.Validate(t.resource, t.generation); err != nil {
		return nil, err
	}
	if err := t.ctx.Err(); err != nil {
		return nil, leasehold.Errorf(token.Op, leasehold.ErrUnavailable, t.resource, "nothing was written: %w", err)
	}
	for range commitAttempts {
		resp, err := t.guarded().Commit()
		if err != nil {
			return nil, translate(t.resource, err)
		}
		if resp.Succeeded {
			inner := (*clientv3.TxnResponse)(resp.Responses[1].GetResponseTxn())
			inner.Header = resp.Header
			return inner, nil
		}
		if fence := resp.Responses[0].GetResponseRange().Kvs; len(fence) > 0 {
			return nil, t.refused(string(fence[0].Value))
		}
		if err := t.create(); err != nil {
			return nil, err
		}
	}
	return nil, leasehold.Errorf(token.Op, leasehold.ErrUnavailable, t.resource,
		"nothing was written: somebody removes the fence %q again and again", t.key)
}

// guarded returns the application's transaction within the guard's. It asks for a
// value that is less than the next generation, since etcd knows no less-or-equal. The
// comparison fails if there is no value.
//
// What is no generation may be less as text, too, so the value must not be below all
// generations either. Etcd can say no more than that: what begins with as many zeros
// as a generation and is none is protected by the prefix alone.
func (t *txn) guarded() clientv3.Txn {
	return t.kv.Txn(t.ctx).
		If(
			clientv3.Compare(clientv3.Value(t.key), "<", token.Format(t.generation+1)),
			clientv3.Compare(clientv3.Value(t.key), ">", belowAll)).
		Then(
			clientv3.OpPut(t.key, token.Format(t.generation)),
			clientv3.OpTxn(t.comparisons, t.success, t.otherwise)).
		Else(clientv3.OpGet(t.key))
}

// belowAll is below token.Format(0), and nothing of that length is between.
const belowAll = "0000000000000000000/"

// create makes a fence that keeps nobody out, unless there is one.
func (t *txn) create() error {
	_, err := t.kv.Txn(t.ctx).
		If(clientv3.Compare(clientv3.CreateRevision(t.key), "=", 0)).
		Then(clientv3.OpPut(t.key, token.Format(0))).
		Commit()
	if err != nil {
		return translateBefore(t.resource, err)
	}
	return nil
}

// refused says what the value of the fence has against us.
func (t *txn) refused(value string) error {
	known, ok := token.Parse(value)
	if !ok || known <= t.generation {
		return leasehold.Errorf(token.Op, leasehold.ErrInvalid, t.resource,
			"nothing was written: the key %q is no fence; choose a prefix that nobody else uses", t.key)
	}
	return token.Stale(t.resource, t.generation, known)
}
