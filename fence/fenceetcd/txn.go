package fenceetcd

import (
	"cmp"
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence/internal/token"
)

// Txn returns a guarded transaction. It is used like one of the client: If, Then and Else add
// to it, and Commit executes it. If a later owner of the resource has written, Commit fails
// with [leasehold.ErrStale], and neither Then nor Else was executed. Otherwise the response
// is that of the application's transaction: Succeeded is the result of its comparisons. In
// both cases the generation is stored, so that reads in Else are guarded, too.
//
// If etcd could not execute it, the error has a kind; it is [leasehold.ErrIndeterminate] if
// it may have been executed. It is not retried. The client waits for a connection until the
// context ends: set a deadline.
//
// It has the limits of an etcd transaction, less the two operations of the guard: by default
// 126 in each of If, Then and Else, and 1.5 MiB. It must not write the key of the fence. It
// is not safe for concurrent use, and Commit is called once.
func (g Guard) Txn(ctx context.Context, kv clientv3.KV, resource string, generation leasehold.Generation) clientv3.Txn {
	return &txn{ctx: ctx, kv: kv, key: g.Key(resource), resource: resource, generation: generation}
}

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

// commitAttempts is the number of attempts of Commit: one more than it needs to create a
// missing fence.
const commitAttempts = 3

func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	if err := token.Validate(t.resource, t.generation); err != nil {
		return nil, err
	}
	if err := t.ctx.Err(); err != nil {
		return nil, token.Unwritten(leasehold.ErrUnavailable, t.resource, err)
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
			return nil, t.rejected(string(fence[0].Value))
		}
		if err := t.create(); err != nil {
			return nil, err
		}
	}
	return nil, leasehold.Errorf(token.Op, leasehold.ErrUnavailable, t.resource,
		"nothing was written: another client keeps deleting the fence %q", t.key)
}

// guarded returns the application's transaction nested in the guard's. It compares the fence
// with the next generation, because etcd has no less-or-equal. The comparison fails if the
// key is missing.
//
// Another text may sort before the generation, too, so the value must also not be below all
// generations. etcd has no more comparisons: texts that begin with as many zeros as a
// generation are excluded only by the prefix.
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

// belowAll sorts before token.Format(0), with no text of that length between.
const belowAll = "0000000000000000000/"

// create creates a fence with generation 0 if it is missing.
func (t *txn) create() error {
	_, err := t.kv.Txn(t.ctx).
		If(clientv3.Compare(clientv3.CreateRevision(t.key), "=", 0)).
		Then(clientv3.OpPut(t.key, token.Format(0))).
		Commit()
	if err != nil {
		kind, _ := kindOf(err)
		return token.Unwritten(kind, t.resource, err)
	}
	return nil
}

func (t *txn) rejected(value string) error {
	known, ok := token.Parse(value)
	if !ok || known <= t.generation {
		return token.Alien(t.resource, t.key)
	}
	return token.Stale(t.resource, t.generation, known)
}

// DefaultPrefix is the default of Guard.Prefix.
const DefaultPrefix = "leasehold/fence/"

// Guard guards writes to etcd. The zero Guard is ready to use. It has no state and is safe for
// concurrent use, with any number of clients.
type Guard struct {
	// Prefix begins the keys of fences. Default DefaultPrefix. Generations of different
	// namespaces are unrelated: give each namespace its own prefix, or different resources.
	Prefix string
}

// Key returns the key with the generation of a resource.
func (g Guard) Key(resource string) string {
	return cmp.Or(g.Prefix, DefaultPrefix) + resource
}

// Check stores a generation: later writes of earlier owners are rejected. A new owner calls it
// before it reads its state. It fails with [leasehold.ErrStale] if a later owner has written.
//
// It does not permit writes without the guard, because the next owner may write first: use
// [Guard.Txn].
func (g Guard) Check(ctx context.Context, kv clientv3.KV, resource string, generation leasehold.Generation) error {
	_, err := g.Txn(ctx, kv, resource, generation).Commit()
	return err
}

// rejections are the codes of etcd's own errors for requests that were not executed. They do
// not apply to errors of gRPC: a request whose response is too large was executed.
var rejections = map[codes.Code]leasehold.Kind{
	codes.InvalidArgument:   leasehold.ErrInvalid,
	codes.OutOfRange:        leasehold.ErrInvalid,
	codes.PermissionDenied:  leasehold.ErrInvalid,
	codes.Unauthenticated:   leasehold.ErrInvalid,
	codes.NotFound:          leasehold.ErrNotFound, // the etcd lease of a put
	codes.ResourceExhausted: leasehold.ErrLimit,
}

func translate(resource string, err error) error {
	kind, rejected := kindOf(err)
	// The write that exceeds etcd's quota may be executed, and has the same error as those
	// after it, which are not.
	if errors.Is(err, rpctypes.ErrNoSpace) || !rejected {
		return token.Unknown(resource, err)
	}
	return token.Unwritten(kind, resource, err)
}

// kindOf returns the kind of an error of the client, and whether etcd rejected the request.
func kindOf(err error) (kind leasehold.Kind, rejected bool) {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		if kind, rejected = rejections[known.Code()]; rejected {
			return kind, true
		}
	}
	return leasehold.ErrUnavailable, false
}
