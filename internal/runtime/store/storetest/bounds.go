package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// calls are all calls that can fail, with the outcome if they have one.
func calls(p *pen) map[string]func(context.Context, store.Store) (storage.Outcome, error) {
	batch, snapshot := p.next(1), p.snapshot()
	return map[string]func(context.Context, store.Store) (storage.Outcome, error){
		"Record": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			_, err := s.Record(ctx, true)
			return 0, err
		},
		"old Record": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			_, err := s.Record(ctx, false)
			return 0, err
		},
		"Swap": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			_, outcome, err := s.Swap(ctx, 0, storage.Record{Term: 1})
			return outcome, err
		},
		"Catalog": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			_, err := s.Catalog(ctx)
			return 0, err
		},
		"SaveCatalog": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			return s.SaveCatalog(ctx, &storage.Catalog{Term: 1})
		},
		"Append": func(ctx context.Context, s store.Store) (storage.Outcome, error) { return s.Append(ctx, batch) },
		"End": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			_, err := s.End(ctx, ns)
			return 0, err
		},
		"Load": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			_, err := s.Load(ctx, ns)
			return 0, err
		},
		"SaveSnapshot": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			return 0, s.SaveSnapshot(ctx, snapshot)
		},
		"History": func(ctx context.Context, s store.Store) (storage.Outcome, error) {
			_, err := s.History(ctx, ns, 0, 1)
			return 0, err
		},
	}
}

func endedContext(t *testing.T, s store.Store) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(newPen(t, 1)) {
		outcome, err := call(ended, s)
		if !errors.Is(err, context.Canceled) || leasehold.KindOf(err) != leasehold.ErrUnavailable {
			t.Errorf("%s: %v, want it to say that the context was cancelled", name, err)
		}
		if outcome != 0 && outcome != storage.Unknown {
			t.Errorf("%s: %v", name, outcome)
		}
	}
	s.WatchRecord(ended, func(storage.Record) { t.Error("a hint after the context ended") })
	// Nothing else was harmed.
	lead(t, s, 1)
	checkLoad(t, s, newPen(t, 1))
}

func closed(t *testing.T, s store.Store) {
	lead(t, s, 1)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		s.WatchRecord(context.Background(), func(storage.Record) {})
	}()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	<-watching
	for name, call := range calls(newPen(t, 1)) {
		outcome, err := call(t.Context(), s)
		if leasehold.KindOf(err) != leasehold.ErrClosed {
			t.Errorf("%s: %v, want it to say that the store is closed", name, err)
		}
		if outcome != 0 && outcome != storage.Unknown {
			t.Errorf("%s: %v", name, outcome)
		}
	}
}

// namesThatMakeNoSense could reach into what is not theirs.
func namesThatMakeNoSense(t *testing.T, s store.Store) {
	lead(t, s, 1)
	p := newPen(t, 1)
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
