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
		kind, _ := kindOf(err)
		return token.Unwritten(kind, t.resource, err)
	}
	return nil
}

func (t *txn) refused(value string) error {
	known, ok := token.Parse(value)
	if !ok || known <= t.generation {
		return token.Alien(t.resource, t.key)
	}
	return token.Stale(t.resource, t.generation, known)
}

// DefaultPrefix is what the keys of fences begin with unless Guard says otherwise.
const DefaultPrefix = "leasehold/fence/"

// Guard guards writes to etcd. The zero Guard is ready to be used. It has no
// state: its methods may be called by many goroutines at once, and with many
// clients.
type Guard struct {
	// Prefix is what the keys of fences begin with. Default DefaultPrefix. Each
	// namespace has its own generations: give each a prefix of its own, or resources
	// that differ.
	Prefix string
}

// Key returns the key that remembers the generation of a resource.
func (g Guard) Key(resource string) string {
	return cmp.Or(g.Prefix, DefaultPrefix) + resource
}

// Check makes etcd know of a generation: what earlier owners write from now on is
// refused. A new owner calls it before it reads what it will act upon. It fails with
// [leasehold.ErrStale] if a later owner has come.
//
// It is no leave to write without the guard, since the next owner may come between:
// that is what [Guard.Txn] is for.
func (g Guard) Check(ctx context.Context, kv clientv3.KV, resource string, generation leasehold.Generation) error {
	_, err := g.Txn(ctx, kv, resource, generation).Commit()
	return err
}

// refusals are the codes of etcd's own errors that say that nothing was done.
// Errors of gRPC alone are none: a response that is too large for the client has
// been carried out.
var refusals = map[codes.Code]leasehold.Kind{
	codes.InvalidArgument:   leasehold.ErrInvalid,
	codes.OutOfRange:        leasehold.ErrInvalid,
	codes.PermissionDenied:  leasehold.ErrInvalid,
	codes.Unauthenticated:   leasehold.ErrInvalid,
	codes.NotFound:          leasehold.ErrNotFound, // the etcd lease of a put
	codes.ResourceExhausted: leasehold.ErrLimit,
}

func translate(resource string, err error) error {
	kind, refused := kindOf(err)
	// The write that fills etcd up may be carried out, and gets this error like
	// those after it, which are not.
	if errors.Is(err, rpctypes.ErrNoSpace) || !refused {
		return token.Unknown(resource, err)
	}
	return token.Unwritten(kind, resource, err)
}

// kindOf returns the kind of an error of the client, and whether etcd has refused.
func kindOf(err error) (kind leasehold.Kind, refused bool) {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		if kind, refused = refusals[known.Code()]; refused {
			return kind, true
		}
	}
	return leasehold.ErrUnavailable, false
}
