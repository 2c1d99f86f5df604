package etcd

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func (d *database) View() kv.View { return &view{d: d} }

// A view reads at the revision that its first read finds.
type view struct {
	d        *database
	revision int64
}

// options pins a read to the view's revision. The first read has none, and is
// linearizable; so are the others, since a member that lags behind does not
// have the revision yet.
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

// Pages. Entries are at most half a megabyte each, so that the first page is
// bounded whatever it meets; the pages after it are as large as those before
// let expect.
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
			from = string(row.Key) + "\x00" // the next key there can be
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
