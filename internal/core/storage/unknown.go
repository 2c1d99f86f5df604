package storage

import (
	"github.com/leasehold-dev/leasehold"
)

// A group that keeps nothing on disk numbers changes and grants by terms: all
// that a leader gives out is above all that any leader before it has given out,
// though it may never have heard of that. A term has room for so many; a leader
// that has used them up starts a new term.
//
// Terms of such a group are milliseconds since 1970 when their leases began, or
// higher. With 2^20 numbers each, generations stay below 2^63 until the year
// 2248.
const perTerm = 1 << 20

// LastTerm is the last one that has numbers.
const LastTerm = leasehold.Term(1<<43 - 2)

// First returns the LSN at which the log of a term begins, and the generation
// that all of the term exceed.
func First(t leasehold.Term) (leasehold.LSN, leasehold.Generation) {
	return leasehold.LSN(t) * perTerm, leasehold.Generation(t) * perTerm
}

// Spent reports whether a term may not have room for another n numbers.
func Spent(t leasehold.Term, at leasehold.LSN, newest leasehold.Generation, n int) bool {
	lsn, generation := First(t + 1)
	return at+leasehold.LSN(n) >= lsn || newest+leasehold.Generation(n) >= generation
}
