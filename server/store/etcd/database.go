package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
)

// A database implements [kv.DB] for an etcd cluster.
type database struct {
	client *clientv3.Client
	prefix string
	room   *room        // nil: the operator of the cluster manages space
	ended  func() error // returns why the member has stopped; may be nil
	close  func() error

	directory string        // identity of the data directory; empty if unknown, or for an external cluster
	cluster   atomic.Uint64 // id of the cluster in the last response
}

var _ kv.DB = (*database)(nil)

// Identity implements [kv.DB]. The cluster's id is in the header of every response: a cluster can be
// restored during a connection.
func (d *database) Identity() storage.Identity {
	i := storage.Identity{Directory: d.directory}
	if id := d.cluster.Load(); id != 0 {
		i.Cluster = strconv.FormatUint(id, 16)
	}
	return i
}

func (d *database) answered(h *pb.ResponseHeader) { d.cluster.Store(h.GetClusterId()) }

// request bounds one request. Each has its own context, so that its timeout does not affect others.
func (d *database) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}

func (d *database) failed(err error) error {
	if err != nil && d.ended != nil {
		if why := d.ended(); why != nil {
			return why
		}
	}
	return translate(err)
}

func (d *database) entry(key string, kvs []*mvccpb.KeyValue) kv.Entry {
	e := kv.Entry{Key: key}
	if len(kvs) > 0 {
		e.Value, e.Revision = kvs[0].Value, kv.Revision(kvs[0].ModRevision)
	}
	return e
}

func (d *database) Peek(ctx context.Context, key string) (kv.Entry, error) {
	ctx, cancel := d.request(ctx)
	defer cancel()
	resp, err := d.client.Get(ctx, d.prefix+key, clientv3.WithSerializable())
	if err != nil {
		return kv.Entry{}, d.failed(err)
	}
	d.answered(resp.Header)
	return d.entry(key, resp.Kvs), nil
}

// uncompacted returns the number of revisions if the cluster has never been compacted, and otherwise
// 0. It costs a read of one key.
func (d *database) uncompacted(ctx context.Context) int64 {
	ctx, cancel := d.request(ctx)
	defer cancel()
	resp, err := d.client.Get(ctx, d.prefix+"record", clientv3.WithRev(1), clientv3.WithCountOnly())
	if err != nil {
		return 0
	}
	return resp.Header.GetRevision()
}

func (d *database) Commit(ctx context.Context, t kv.Txn) (kv.Result, error) {
	if t.Grows && d.room != nil {
		if err := d.room.admit(size(t.Puts)); err != nil {
			return kv.Result{}, err
		}
	}
	ctx, cancel := d.request(ctx)
	defer cancel()
	guards := make([]clientv3.Cmp, len(t.Guards))
	for i, g := range t.Guards {
		if key := d.prefix + g.Key; g.Value != nil {
			guards[i] = clientv3.Compare(clientv3.Value(key), "=", string(g.Value))
		} else {
			guards[i] = clientv3.Compare(clientv3.ModRevision(key), "=", int64(g.Revision))
		}
	}
	var writes []clientv3.Op
	for _, span := range t.Deletes {
		writes = append(writes, clientv3.OpDelete(d.prefix+span.From, clientv3.WithRange(d.prefix+span.To)))
	}
	for _, e := range t.Puts {
		writes = append(writes, clientv3.OpPut(d.prefix+e.Key, string(e.Value)))
	}
	if err := failpoint.Fail("etcd/before-commit"); err != nil {
		return kv.Result{}, err
	}
	resp, err := d.client.Txn(ctx).If(guards...).Then(writes...).Else(d.gets(t.Else)...).Commit()
	if err != nil {
		return kv.Result{}, d.failed(err)
	}
	d.answered(resp.Header)
	if err := failpoint.Fail("etcd/committed"); err != nil {
		return kv.Result{}, err
	}
	if resp.Succeeded {
		return kv.Result{Held: true, Revision: kv.Revision(resp.Header.Revision)}, nil
	}
	return kv.Result{Else: d.entries(t.Else, resp.Responses)}, nil
}

func size(entries []kv.Entry) (bytes int) {
	for _, e := range entries {
		bytes += len(e.Key) + len(e.Value)
	}
	return bytes
}

func (d *database) gets(keys []string, opts ...clientv3.OpOption) []clientv3.Op {
	ops := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		ops[i] = clientv3.OpGet(d.prefix+key, opts...)
	}
	return ops
}

func (d *database) entries(keys []string, responses []*pb.ResponseOp) []kv.Entry {
	out := make([]kv.Entry, len(keys))
	for i, key := range keys {
		out[i] = d.entry(key, responses[i].GetResponseRange().GetKvs())
	}
	return out
}

// rewatch is the delay before a failed watch is restarted. Until then the readers poll.
const rewatch = time.Second

func (d *database) Watch(ctx context.Context, key string, seen func(kv.Entry)) {
	for {
		watching, stop := context.WithCancel(ctx)
		for resp := range d.client.Watch(watching, d.prefix+key, clientv3.WithFilterDelete()) {
			for _, event := range resp.Events {
				seen(d.entry(key, []*mvccpb.KeyValue{event.Kv}))
			}
		}
		stop()
		select {
		case <-ctx.Done():
			return
		case <-time.After(rewatch):
		}
	}
}

func (d *database) Close() error { return d.close() }

func (d *database) View() kv.View { return &view{d: d} }

// A view reads at the revision of its first read.
type view struct {
	d        *database
	revision int64
}

// options pins a read to the view's revision. The first read has none, and is linearizable; so are the
// others, since a lagging member may not have the revision yet.
func (v *view) options(more ...clientv3.OpOption) []clientv3.OpOption {
	if v.revision == 0 {
		return more
	}
	return append(more, clientv3.WithRev(v.revision))
}

func (v *view) pin(revision int64) {
	if v.revision == 0 {
		v.revision = revision
	}
}

func (v *view) Get(ctx context.Context, keys ...string) ([]kv.Entry, error) {
	ctx, cancel := v.d.request(ctx)
	defer cancel()
	resp, err := v.d.client.Txn(ctx).Then(v.d.gets(keys, v.options()...)...).Commit()
	if err != nil {
		return nil, v.d.failed(err)
	}
	v.pin(resp.Header.Revision)
	v.d.answered(resp.Header)
	return v.d.entries(keys, resp.Responses), nil
}

// Pages. Entries have at most half a megabyte, so the first page is bounded for all sizes; the size of
// later pages is derived from the entries before.
const (
	firstPage = 16
	maxPage   = 4096
	pageBytes = 4 << 20
)

func (v *view) Scan(ctx context.Context, span kv.Span, each func(kv.Entry) error) error {
	from, to := v.d.prefix+span.From, v.d.prefix+span.To
	size, limit := 0, int64(firstPage)
	for read := 0; ; {
		resp, err := v.page(ctx, from, to, limit)
		if err != nil {
			return v.d.failed(err)
		}
		v.pin(resp.Header.Revision)
		for _, row := range resp.Kvs {
			e := kv.Entry{Key: string(row.Key[len(v.d.prefix):]), Value: row.Value, Revision: kv.Revision(row.ModRevision)}
			if err := each(e); err != nil {
				return err
			}
			size += len(row.Key) + len(row.Value)
			from = string(row.Key) + "\x00" // the next possible key
		}
		if !resp.More {
			return nil
		}
		read += len(resp.Kvs)
		limit = int64(max(firstPage, min(maxPage, pageBytes/(size/read+1))))
	}
}

func (v *view) page(ctx context.Context, from, to string, limit int64) (*clientv3.GetResponse, error) {
	ctx, cancel := v.d.request(ctx)
	defer cancel()
	return v.d.client.Get(ctx, from, v.options(clientv3.WithRange(to), clientv3.WithLimit(limit))...)
}

// translate gives etcd's errors a kind, and adds advice to those that the operator can fix.
func translate(err error) error {
	const op = "etcd"
	var known rpctypes.EtcdError
	switch {
	case err == nil || leasehold.KindOf(err) != leasehold.Other:
		return err
	case errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted):
		return fmt.Errorf("%w: %w", kv.ErrViewLost, err)
	case errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace):
		return leasehold.Errorf(op, leasehold.ErrLimit, "",
			"%w: its quota is used up; an embedded store goes on by itself once there is room, in a cluster compact, defragment and disarm the alarm, or raise the quota", err)
	case errors.As(rpctypes.Error(err), &known) && refusals[known.Code()]:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "%w: check user, password and the role's permission for the prefix", err)
	case refusals[status.Code(err)]:
		return leasehold.Errorf(op, leasehold.ErrInvalid, "", "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return leasehold.Errorf(op, leasehold.ErrUnavailable, "", "no response in time: %w", err)
	}
	return &leasehold.Error{Op: op, Kind: leasehold.ErrUnavailable, Err: err}
}

// refusals are the codes that a retry does not change.
var refusals = map[codes.Code]bool{
	codes.InvalidArgument: true, codes.PermissionDenied: true, codes.Unauthenticated: true,
}
