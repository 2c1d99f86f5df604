package lookup

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A lossLog contains the newest losses, which readers follow at their own pace. It
// is safe for concurrent use.
type lossLog struct {
	keep int

	mu sync.Mutex
	// kept is in order of LSN, as [leasehold.Loss.Resume] requires. A loss of
	// contact has the LSN of the table, which may be the LSN of the loss before it.
	kept []leasehold.Loss
	// first is the position of kept[0]. Positions number losses from 1, with a gap
	// where the outbox has dropped losses.
	first uint64
	floor leasehold.LSN // every later loss is kept
	begin leasehold.LSN // of the first table
	table *table.Table  // all of its losses were appended; nil before the first table
	// contact is the newest contact; all earlier losses were appended.
	contact Contact
	grown   chan struct{} // closed by the next append
}

// A cursor is the position of a reader.
type cursor struct {
	next uint64        // position of the next read; before first, the reader reads the table instead
	lsn  leasehold.LSN // the reader has all losses up to here, and some of the next LSN at most
}

// dropped is a position before all losses of the log.
const dropped = 0

// maxBatch bounds the losses that are copied for a reader at a time.
const maxBatch = 256

func newLossLog(keep int) *lossLog {
	return &lossLog{keep: keep, first: dropped + 1, grown: make(chan struct{})}
}

// append adds the losses of an update, whose table must not be nil.
func (g *lossLog) append(u update) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.table == nil {
		g.begin, g.floor = u.table.LSN(), u.table.LSN() // earlier losses are only in the table
	}
	g.table = u.table
	if u.contact != nil {
		g.contact = *u.contact
	}
	if u.dropped > 0 {
		g.first = g.end() + 1
		g.kept = nil
		g.floor = u.dropped
	}
	g.kept = append(g.kept, u.losses...)
	if over := len(g.kept) - g.keep; over > 0 {
		g.floor = g.kept[over-1].LSN
		g.kept = slices.Delete(g.kept, 0, over)
		g.first += uint64(over)
	}
	close(g.grown)
	g.grown = make(chan struct{})
}

func (g *lossLog) contactNow() Contact {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.contact
}

func (g *lossLog) end() uint64 { return g.first + uint64(len(g.kept)) }

// beginning returns the cursor after the first table.
func (g *lossLog) beginning() cursor {
	g.mu.Lock()
	begin := g.begin
	g.mu.Unlock()
	return g.since(begin)
}

// since returns the cursor of a reader that has all losses up to lsn.
func (g *lossLog) since(lsn leasehold.LSN) cursor {
	g.mu.Lock()
	defer g.mu.Unlock()
	if lsn < g.floor {
		return cursor{dropped, lsn}
	}
	i := sort.Search(len(g.kept), func(i int) bool { return g.kept[i].LSN > lsn })
	return cursor{g.first + uint64(i), lsn}
}

// read advances the cursor and returns the next losses. If there are none, it returns a channel
// that is closed by the next append.
func (g *lossLog) read(at *cursor) ([]leasehold.Loss, <-chan struct{}) {
	for {
		batch, t, more := g.step(at)
		if t != nil {
			batch = lostSince(t, at.lsn) // without the lock: takes time linear in the table
			at.lsn = max(at.lsn, t.LSN())
		}
		if len(batch) > 0 || more != nil {
			return batch, more
		}
	}
}

// step advances the cursor by a batch of losses. If the log has dropped the next ones, it
// advances the cursor to the end, and the caller reads them from the table that it returns.
// The channel is nil if more losses are available.
func (g *lossLog) step(at *cursor) ([]leasehold.Loss, *table.Table, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.next < g.first {
		at.next = g.end()
		if n := len(g.kept); n > 0 && g.kept[n-1].Cause == leasehold.CauseContact {
			at.next-- // a loss of contact is not in the table
		}
		return nil, g.table, nil
	}
	next := g.kept[at.next-g.first:]
	next = next[:min(len(next), maxBatch)]
	var batch []leasehold.Loss
	for _, loss := range next {
		// A reader may have started from a table whose losses were appended later.
		if loss.LSN > at.lsn || loss.Cause == leasehold.CauseContact {
			batch = append(batch, loss)
		}
		at.lsn = max(at.lsn, loss.Resume)
	}
	at.next += uint64(len(next))
	if at.next < g.end() {
		return batch, nil, nil
	}
	at.lsn = max(at.lsn, g.table.LSN())
	return batch, nil, g.grown
}

// lostSince returns the losses after an LSN that the table contains.
func lostSince(t *table.Table, lsn leasehold.LSN) []leasehold.Loss {
	var losses []leasehold.Loss
	for r, e := range t.All() {
		if t.LostSince(e, lsn) {
			losses = append(losses, leasehold.Loss{Range: r, LSN: e.Lost})
		}
	}
	return inOrder(numberAcross(t, lsn, losses))
}

// numberAcross sets the LSN of losses that a table shows to a reader with an LSN before its last gap. State may have
// been lost with the history that the store has lost: then the table has only an older loss of the range, or none, and
// the loss is that of the gap. With an older LSN a reader would ignore it.
func numberAcross(t *table.Table, lsn leasehold.LSN, losses []leasehold.Loss) []leasehold.Loss {
	for i := range losses {
		if l := &losses[i]; l.LSN <= lsn && l.Cause != leasehold.CauseContact {
			l.LSN = t.Gap().Base
		}
	}
	return losses
}

// inOrder sorts the losses of one step by LSN and range, and sets their Resume.
//
// Losses from a table may have the same LSN although ranges between them were not lost: a lost range may have
// been split since. A table that a diskless leader has collected from
// the owners, or that was renumbered, has one LSN for all earlier losses.
func inOrder(losses []leasehold.Loss) []leasehold.Loss {
	slices.SortStableFunc(losses, func(a, b leasehold.Loss) int {
		return cmp.Or(cmp.Compare(a.LSN, b.LSN), cmp.Compare(a.Range.Start, b.Range.Start))
	})
	for i := range losses {
		loss := &losses[i]
		loss.Resume = loss.LSN
		if i+1 < len(losses) && losses[i+1].LSN == loss.LSN {
			loss.Resume--
		}
	}
	return losses
}
