package memcatalog

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
)

// logs are the lease tables of one term, in the memory of its leader. A namespace has no log
// until the leader has finished its census of the owners and saved the result as the first
// snapshot.
type logs struct {
	mu   sync.Mutex
	term leasehold.Term // 0 unless this manager leads
	of   map[leasehold.Namespace]*journal
}

// A journal is the log of a namespace.
type journal struct {
	table   *table.Table
	changes []table.Change // after the table
	past    []store.Past   // the newest changes, oldest first
}

// maxPast is how many changes of a namespace are kept for the history.
const maxPast = 16384

func (l *logs) begin(term leasehold.Term) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.term, l.of = term, make(map[leasehold.Namespace]*journal)
}

func (l *logs) end() { l.begin(0) }

// state returns the stored state of a namespace. The lock is held.
func (l *logs) state(ns leasehold.Namespace) *storage.State {
	if j := l.of[ns]; j != nil {
		return &storage.State{Term: l.term, Table: j.table, Changes: slices.Clip(j.changes)}
	}
	return &storage.State{Term: l.term, Unknown: true}
}

// Append implements [store.Tables]. It does not wait.
func (g *Group) Append(_ context.Context, b *storage.Batch) (storage.Outcome, error) {
	l := &g.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	j := l.of[b.Namespace]
	if j == nil || b.Term != l.term || b.Prev != l.state(b.Namespace).End() {
		return storage.Conflict, nil
	}
	j.changes = append(j.changes, b.Changes...)
	now := time.Now()
	for i := range b.Changes {
		j.past = append(j.past, store.Past{At: now, Change: b.Changes[i]})
	}
	if len(j.past) > 2*maxPast {
		j.past = slices.Clone(j.past[len(j.past)-maxPast:])
	}
	return storage.Done, nil
}

// End implements [store.Tables]. It does not wait.
func (g *Group) End(_ context.Context, ns leasehold.Namespace) (storage.End, error) {
	l := &g.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return storage.End{}, g.notLeader("read the end of a log")
	}
	return storage.End{Term: l.term, LSN: l.state(ns).End()}, nil
}

// Load implements [store.Tables]. It does not wait.
func (g *Group) Load(_ context.Context, ns leasehold.Namespace) (*storage.State, error) {
	l := &g.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return nil, g.notLeader("read a table")
	}
	return l.state(ns), nil
}

// SaveSnapshot implements [store.Tables]. The first snapshot of a term starts the log; later ones
// compact it. It does not wait.
func (g *Group) SaveSnapshot(_ context.Context, s *storage.Snapshot) error {
	l := &g.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Term != l.term {
		return nil
	}
	j := l.of[s.Namespace]
	if j == nil {
		l.of[s.Namespace] = &journal{table: s.Table}
		return nil
	}
	if from, at, end := j.table.LSN(), s.Table.LSN(), l.state(s.Namespace).End(); from <= at && at <= end {
		j.table, j.changes = s.Table, slices.Clone(j.changes[at-from:])
	}
	return nil
}

// History implements [store.Tables]. It has no changes of earlier terms.
func (g *Group) History(_ context.Context, ns leasehold.Namespace, before leasehold.LSN, most int) ([]store.Past, error) {
	l := &g.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == 0 {
		return nil, g.notLeader("read history")
	}
	var out []store.Past
	if j := l.of[ns]; j != nil {
		for _, p := range slices.Backward(j.past) {
			if len(out) == most {
				break
			}
			if before == 0 || p.Change.LSN < before {
				out = append(out, p)
			}
		}
	}
	return out, nil
}
