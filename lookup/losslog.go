package lookup

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A lossLog is the newest losses, which readers follow at their own pace. It
// may be used from many goroutines at once.
type lossLog struct {
	keep int

	mu sync.Mutex
	// kept is in order of LSN, as [leasehold.Loss.Resume] requires. A loss of
	// contact has the LSN of the table, and so perhaps of the loss before it.
	kept []leasehold.Loss
	// first is the position of kept[0]. Positions number losses from 1, and
	// skip some where losses were dropped before they got here.
	first uint64
	floor leasehold.LSN // every loss after it is kept
	begin leasehold.LSN // of the first table
	table *table.Table  // what it knows of losses was all appended here; nil before the first
	// contact is the newest; all losses before it were appended.
	contact Contact
	grown   chan struct{} // closed when there is more
}

// A cursor is how far a reader has come.
type cursor struct {
	next uint64        // the position that it reads next; one that is gone sends it to the table
	lsn  leasehold.LSN // it has all losses up to here, and perhaps some of the next
}

// behind is a position that is gone.
const behind = 0

// chunk bounds what is copied for a reader at a time.
const chunk = 256

func newLossLog(keep int) *lossLog {
	return &lossLog{keep: keep, first: behind + 1, grown: make(chan struct{})}
}

// append adds what was lost on the way to a table, which must be there.
func (g *lossLog) append(n news) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.table == nil {
		g.begin, g.floor = n.table.LSN(), n.table.LSN() // of what was before, only the table knows
	}
	g.table = n.table
	if n.contact != nil {
		g.contact = *n.contact
	}
	if n.dropped > 0 {
		g.first = g.end() + 1
		g.kept = nil
		g.floor = n.dropped
	}
	g.kept = append(g.kept, n.losses...)
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

// beginning returns where a reader starts who gets all since the first table.
func (g *lossLog) beginning() cursor {
	g.mu.Lock()
	begin := g.begin
	g.mu.Unlock()
	return g.since(begin)
}

// since returns where a reader starts who has all losses up to lsn.
func (g *lossLog) since(lsn leasehold.LSN) cursor {
	g.mu.Lock()
	defer g.mu.Unlock()
	if lsn < g.floor {
		return cursor{behind, lsn}
	}
	i := sort.Search(len(g.kept), func(i int) bool { return g.kept[i].LSN > lsn })
	return cursor{g.first + uint64(i), lsn}
}

// read returns what comes next, if there is anything, and a channel that is
// closed when there is more than that.
func (g *lossLog) read(at *cursor) ([]leasehold.Loss, <-chan struct{}) {
	for {
		batch, t, more := g.step(at)
		if t != nil {
			batch = lostSince(t, at.lsn) // outside of the lock: it takes a while
			at.lsn = max(at.lsn, t.LSN())
		}
		if len(batch) > 0 || more != nil {
			return batch, more
		}
	}
}

// step moves the cursor on by a chunk of losses, or past those that the table
// is to be asked for. The channel is nil if there is more already.
func (g *lossLog) step(at *cursor) ([]leasehold.Loss, *table.Table, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.next < g.first {
		at.next = g.end()
		if n := len(g.kept); n > 0 && g.kept[n-1].Cause == leasehold.CauseContact {
			at.next-- // the table does not know that contact is lost
		}
		return nil, g.table, nil
	}
	next := g.kept[at.next-g.first:]
	next = next[:min(len(next), chunk)]
	var batch []leasehold.Loss
	for _, loss := range next {
		// A reader may have started from a table whose losses were not here yet.
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

// lostSince returns what the table contains of losses after an LSN.
func lostSince(t *table.Table, lsn leasehold.LSN) []leasehold.Loss {
	var losses []leasehold.Loss
	for r, e := range t.All() {
		if t.LostSince(e, lsn) {
			losses = append(losses, leasehold.Loss{Range: r, LSN: e.Lost})
		}
	}
	return inOrder(losses)
}

// inOrder sorts the losses of one step by LSN and range, and sets from where to resume after each.
//
// Losses that were read from a table may have the same LSN, and ranges between them need not have been lost. What
// was one range when its state was lost may be several since. A table that a diskless leader has collected from
// the owners, or that was renumbered, has one LSN for all that was lost before.
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
