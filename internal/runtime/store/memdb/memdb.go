// Package memdb is a [kv.DB] in memory.
package memdb

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
)

// A DB is a slice of entries, sorted by key, with copy-on-write for views: the first write after a view copies the
// slice. The zero value is empty. It is safe for concurrent use.
type DB struct {
	mu       sync.Mutex
	revision kv.Revision
	entries  []kv.Entry
	viewed   bool // a view refers to entries
	watches  map[*watch]struct{}
}

// A watch has the newest unread entry of a key.
type watch struct {
	key  string
	next chan kv.Entry // capacity 1: a newer entry replaces an unread one
}

var _ kv.DB = (*DB)(nil)

// Peek implements [kv.DB]. It is always up to date.
func (d *DB) Peek(ctx context.Context, key string) (kv.Entry, error) {
	if err := ctx.Err(); err != nil {
		return kv.Entry{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return find(d.entries, key), nil
}

// Identity implements [kv.DB]. Memory has no copies with other identities.
func (d *DB) Identity() storage.Identity { return storage.Identity{} }

// View implements [kv.DB].
func (d *DB) View() kv.View {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.viewed = true
	return view(d.entries)
}

// Commit implements [kv.DB].
func (d *DB) Commit(ctx context.Context, t kv.Txn) (kv.Result, error) {
	if err := ctx.Err(); err != nil {
		return kv.Result{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range t.Guards {
		if !holds(g, find(d.entries, g.Key)) {
			var res kv.Result
			for _, key := range t.Else {
				res.Else = append(res.Else, find(d.entries, key))
			}
			return res, nil
		}
	}
	if d.viewed {
		d.entries, d.viewed = slices.Clone(d.entries), false
	}
	d.revision++
	for _, span := range t.Deletes {
		from, to := search(d.entries, span.From), search(d.entries, span.To)
		d.entries = slices.Delete(d.entries, from, max(from, to))
	}
	for _, e := range t.Puts {
		e.Revision = d.revision
		d.put(e)
	}
	return kv.Result{Held: true, Revision: d.revision}, nil
}

func (d *DB) put(e kv.Entry) {
	i := search(d.entries, e.Key)
	if i < len(d.entries) && d.entries[i].Key == e.Key {
		d.entries[i] = e
	} else {
		d.entries = slices.Insert(d.entries, i, e)
	}
	for w := range d.watches {
		if w.key == e.Key {
			w.offer(e)
		}
	}
}

// Watch implements [kv.DB]. A slow watcher receives only the newest entry.
func (d *DB) Watch(ctx context.Context, key string, seen func(kv.Entry)) {
	w := &watch{key: key, next: make(chan kv.Entry, 1)}
	d.mu.Lock()
	if d.watches == nil {
		d.watches = make(map[*watch]struct{})
	}
	d.watches[w] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watches, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.next:
			seen(e)
		}
	}
}

// offer never blocks. Only one goroutine at a time offers.
func (w *watch) offer(e kv.Entry) {
	select {
	case <-w.next:
	default:
	}
	w.next <- e
}

// Backup returns a copy of the content.
func (d *DB) Backup() *DB {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &DB{revision: d.revision, entries: slices.Clone(d.entries)}
}

// Restore replaces the content by that of a backup. Revisions continue if running is set, because processes
// that are running have seen the present ones: each entry is then a new write.
func (d *DB) Restore(b *DB, running bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries, d.viewed = slices.Clone(b.entries), false
	if !running {
		d.revision = b.revision
		return
	}
	d.revision++
	for i := range d.entries {
		d.entries[i].Revision = d.revision
	}
}

// Close does nothing: the data outlives the store.
func (d *DB) Close() error { return nil }

func holds(g kv.Guard, e kv.Entry) bool {
	if g.Value != nil {
		return e.Revision != 0 && bytes.Equal(e.Value, g.Value)
	}
	return e.Revision == g.Revision
}

func search(entries []kv.Entry, key string) int {
	i, _ := slices.BinarySearchFunc(entries, key, func(e kv.Entry, key string) int { return strings.Compare(e.Key, key) })
	return i
}

func find(entries []kv.Entry, key string) kv.Entry {
	if i := search(entries, key); i < len(entries) && entries[i].Key == key {
		return entries[i]
	}
	return kv.Entry{Key: key}
}

type view []kv.Entry

func (v view) Get(ctx context.Context, keys ...string) ([]kv.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]kv.Entry, len(keys))
	for i, key := range keys {
		out[i] = find(v, key)
	}
	return out, nil
}

func (v view) Scan(ctx context.Context, span kv.Span, each func(kv.Entry) error) error {
	for i := search(v, span.From); i < len(v) && v[i].Key < span.To; i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := each(v[i]); err != nil {
			return err
		}
	}
	return nil
}
