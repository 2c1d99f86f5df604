package storage

import (
	"github.com/leasehold-dev/leasehold"
)

// perTerm is the size of a term's number space in a group without a store. Such a group derives
// LSNs and generations from terms: all numbers of a leader are above those of all previous leaders,
// even if it never received any of these. A leader that has used all numbers of its term starts a
// new term.
//
// Terms of such a group are milliseconds since 1970 at the start of the leader's lease, or higher.
// With 2^20 numbers each, generations stay below 2^63 until the year 2248.
const perTerm = 1 << 20

// LastTerm is the last term with numbers.
const LastTerm = leasehold.Term(1<<43 - 2)

// First returns the first LSN of a term's log, and the lower bound of its generations.
func First(t leasehold.Term) (leasehold.LSN, leasehold.Generation) {
	return leasehold.LSN(t) * perTerm, leasehold.Generation(t) * perTerm
}

// Spent reports whether a term may lack numbers for n more changes.
func Spent(t leasehold.Term, at leasehold.LSN, newest leasehold.Generation, n int) bool {
	lsn, generation := First(t + 1)
	return at+leasehold.LSN(n) >= lsn || newest+leasehold.Generation(n) >= generation
}
