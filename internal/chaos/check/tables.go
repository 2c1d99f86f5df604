package check

import "github.com/leasehold-dev/leasehold"

// judgeTables sees to it that all lookups have the same table at an LSN, and that none
// goes back (I5).
func (b *Book) judgeTables(n *Counts) {
	type version struct {
		hash   uint64
		caller string
	}
	known := make(map[leasehold.LSN]version)
	for _, c := range b.callers {
		var last leasehold.LSN
		for _, t := range c.tables {
			n.Tables++
			if t.LSN < last {
				b.add("I5", "a table went back", "the table of caller %s went back from LSN %d to %d", c.name, last, t.LSN)
			}
			last = t.LSN
			switch v, ok := known[t.LSN]; {
			case !ok:
				known[t.LSN] = version{t.Hash, c.name}
			case v.hash != t.Hash:
				b.add("I5", "there were two tables of one LSN", "callers %s and %s have different tables of LSN %d", v.caller, c.name, t.LSN)
			}
		}
	}
}
