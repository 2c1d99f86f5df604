package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// A call is a method call of a store, with its outcome if it has one.
type call func(context.Context, store.Store) (storage.Outcome, error)

// reading returns a call without outcome.
func reading[T any](read func(context.Context, store.Store) (T, error)) call {
	return func(ctx context.Context, s store.Store) (storage.Outcome, error) {
		_, err := read(ctx, s)
		return 0, err
	}
}

// wantFailures calls every method that can fail, and checks the error.
func wantFailures(ctx context.Context, t *testing.T, s store.Store, kind leasehold.Kind, cause error) {
	t.Helper()
	p := newPen(t, 1)
	batch, snapshot := p.next(1), p.snapshot()
	for name, call := range map[string]call{
		"Record":     reading(func(ctx context.Context, s store.Store) (storage.Record, error) { return s.Record(ctx, true) }),
		"old Record": reading(func(ctx context.Context, s store.Store) (storage.Record, error) { return s.Record(ctx, false) }),
		"Catalog":    reading(func(ctx context.Context, s store.Store) (*storage.Catalog, error) { return s.Catalog(ctx) }),
		"End":        reading(func(ctx context.Context, s store.Store) (storage.End, error) { return s.End(ctx, ns) }),
		"Load":       reading(func(ctx context.Context, s store.Store) (*storage.State, error) { return s.Load(ctx, ns) }),
		"History":    reading(func(ctx context.Context, s store.Store) ([]store.Past, error) { return s.History(ctx, ns, 0, 1) }),
		"Append":     func(ctx context.Context, s store.Store) (storage.Outcome, error) { return s.Append(ctx, batch) },
		"SaveCatalog": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			return s.SaveCatalog(ctx, &storage.Catalog{Term: 1})
		},
		"SaveSnapshot": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			return 0, s.SaveSnapshot(ctx, snapshot)
		},
		"Swap": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			_, outcome, err := s.Swap(ctx, 0, storage.Record{Term: 1})
			return outcome, err
		},
	} {
		outcome, err := call(ctx, s)
		if leasehold.KindOf(err) != kind || cause != nil && !errors.Is(err, cause) {
			t.Errorf("%s: %v, want the kind %v and the cause %v", name, err, kind, cause)
		}
		if outcome != 0 && outcome != storage.Unknown {
			t.Errorf("%s: %v", name, outcome)
		}
	}
}

func endedContext(t *testing.T, s store.Store) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantFailures(ended, t, s, leasehold.ErrUnavailable, context.Canceled)
	s.WatchRecord(ended, func(storage.Record) { t.Error("a hint after the context ended") })
	// The store still works.
	lead(t, s, 1)
	checkLoad(t, s, newPen(t, 1))
}

func closed(t *testing.T, s store.Store) {
	lead(t, s, 1)
	var watching sync.WaitGroup
	watching.Go(func() { s.WatchRecord(context.Background(), func(storage.Record) {}) })
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	watching.Wait()
	wantFailures(t.Context(), t, s, leasehold.ErrClosed, nil)
}

// invalidNames checks names that could collide with keys of other namespaces.
func invalidNames(t *testing.T, s store.Store) {
	p := leadingPen(t, s, 1)
	for _, p.ns = range []leasehold.Namespace{"", "a/b", "../record", "A"} {
		outcome, err := s.Append(t.Context(), p.next(1))
		if outcome != storage.Conflict || leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%q: append: %v, %v", p.ns, outcome, err)
		}
		if _, err := s.Load(t.Context(), p.ns); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%q: load: %v", p.ns, err)
		}
		if err := s.SaveSnapshot(t.Context(), p.snapshot()); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%q: save snapshot: %v", p.ns, err)
		}
	}
}
