package check

import (
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/history"
)

// A version is the table of an LSN, as the first caller that had it reported it.
type version struct {
	hash   uint64
	caller string
	at     oracle.Time // time of that report
}

// judgeTable checks that all lookups have the same table at an LSN, and that none goes back (I5).
func (c *Caller) judgeTable(at oracle.Time, t history.Table) {
	b := c.book
	b.n.Tables++
	if t.LSN < c.lsn {
		b.add("I5", "a table went back", "the table of caller %s went back from LSN %d to %d", c.name, c.lsn, t.LSN)
	}
	c.lsn = t.LSN
	switch v, ok := b.tables[t.LSN]; {
	case !ok:
		b.tables[t.LSN] = version{t.Hash, c.name, at}
	case v.hash != t.Hash:
		b.add("I5", "there were two tables of one LSN", "callers %s and %s have different tables of LSN %d", v.caller, c.name, t.LSN)
	}
}
