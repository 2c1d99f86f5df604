package transcript

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// key is the first key of a unit.
func (w *world) key(unit uint64) leasehold.Key {
	if unit >= w.units {
		return 0 // the end of the key space
	}
	k, _ := bits.Div64(unit, 0, w.units)
	return leasehold.Key(k)
}

// unit returns the number of the unit that begins with a key.
func (w *world) unit(k leasehold.Key) string {
	for u := range w.units {
		if w.key(u) == k {
			return strconv.FormatUint(u, 10)
		}
	}
	return "0x" + k.String()
}

// span formats a range as [1-3].
func (w *world) span(r leasehold.Range) string { return "[" + w.bounds(r) + "]" }

func (w *world) bounds(r leasehold.Range) string {
	limit := strconv.FormatUint(w.units, 10)
	if r.Limit != 0 {
		limit = w.unit(r.Limit)
	}
	return w.unit(r.Start) + "-" + limit
}

func (w *world) lease(l leasehold.Lease) string {
	return fmt.Sprintf("%s@%d", w.span(l.Range), l.Generation)
}

func (w *world) leases(ls []leasehold.Lease) string {
	var parts []string
	for _, l := range ls {
		parts = append(parts, w.lease(l))
	}
	return strings.Join(parts, " ")
}

// numbers formats the pair <owner's, manager's>.
func (w *world) numbers(term leasehold.Term, owners, managers protocol.Seq) string {
	pair := fmt.Sprintf("<%d,%d>", owners, managers)
	several := 0
	for _, p := range w.processes {
		if _, ok := p.(*manager); ok {
			several++
		}
	}
	if several > 1 {
		return fmt.Sprintf("term %d %s", term, pair)
	}
	return pair
}

func (w *world) change(c *table.Change) string {
	l := w.lease(leasehold.Lease{Range: c.Range, Generation: c.Generation})
	if c.Kind == table.Vacated {
		return fmt.Sprintf("%d. %s leaves %s (%v)", c.LSN, l, w.holderName(c.Holder), c.Cause)
	}
	if c.Kind == table.Moved {
		return fmt.Sprintf("%d. %s moves from %s to %s", c.LSN, l, w.holderName(c.From), w.holderName(c.Holder))
	}
	return fmt.Sprintf("%d. %s goes to %s", c.LSN, l, w.holderName(c.Holder))
}

func (w *world) changes(cs []table.Change) string {
	var parts []string
	for i := range cs {
		parts = append(parts, w.change(&cs[i]))
	}
	return strings.Join(parts, "; ")
}

// rows formats a table as in Centrifuge's figure 4.
func (w *world) rows(t *table.Table) []string {
	var rows []string
	for r, e := range t.All() {
		row := "[" + w.bounds(r) + ": "
		if e.Vacant() {
			row += "vacant"
		} else {
			row += fmt.Sprintf("Owner=%s, LGN=%d", w.holderName(e.Holder), e.Generation)
		}
		if e.Lost > 0 {
			row += fmt.Sprintf(", lost at LSN %d", e.Lost)
		}
		rows = append(rows, row+"]")
	}
	return rows
}

func (w *world) printTable(t *table.Table) {
	w.say("LSN %d", t.LSN())
	for _, row := range w.rows(t) {
		w.then("%s", row)
	}
}

func (w *world) loss(l leasehold.Loss) string {
	if l.Owner == "" {
		return fmt.Sprintf("%s (%v, LSN %d)", w.span(l.Range), l.Cause, l.LSN)
	}
	lease := w.lease(leasehold.Lease{Range: l.Range, Generation: l.Generation})
	return fmt.Sprintf("%s of %s (%v, LSN %d)", lease, l.Owner, l.Cause, l.LSN)
}

// seconds formats a duration in seconds, to the millisecond.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64) + "s"
}
