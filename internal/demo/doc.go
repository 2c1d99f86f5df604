// Package demo runs a whole Leasehold on one computer and breaks it: managers,
// owners of a small presence service, callers, and somebody who kills the
// leader and the owners while the callers go on. Or who restarts all owners, one
// after the other, which nobody is to notice.
//
// Managers and owners are processes of their own, so that a kill is the real
// thing: kill -9, no last words. So is a restart: SIGTERM, and the owner's state
// goes to the others over their own connections before it ends. Callers and the one who kills are goroutines of
// the parent. Nothing outlives the parent: see process.go.
//
// # How dual ownership is judged
//
// Not by the managers' word, and not by what callers happen to ask. Every owner
// checks the keys of all users again and again, and tells the
// parent, through a pipe, about the checks that succeeded, and about those of
// each request, with the time on the clock that all processes of a computer
// share. An oracle in the parent compares what the owners believed
// about each key (package witness). If two of them believed for longer than a round of
// checks that they owned a key, it finds out, whatever the lease table says.
//
// The dead believe nothing. So owners are not only killed, but also stopped for
// longer than their leases last, and then let go on with all that they believed
// (nemesis.go).
//
// # How lost state is judged
//
// Callers number what they store and remember what was acknowledged. An answer
// from before that is counted as stale (users.go). An answer that knows nothing
// of it is right only if callers are told of a loss that covers the key, soon;
// or else the loss was silent (suspicions.go). Each status has a text that no other
// has, so that one is not taken for another.
//
// Before owners are restarted one after the other every user sets a status, and
// after it every one is looked at (everyone.go). Nothing else is done to owners
// then: so restarts are to blame for each loss that callers are told of.
//
// # How availability is judged
//
// Requests are due at a steady rate, whatever has become of earlier ones, and
// count from when they were due (load.go). A request that succeeds within a
// second counts as served. All are repeated until they succeed, so that nearly
// all do in the end; that is another figure (report.go).
//
// For how long a key has no answer while it moves is measured by callers who keep
// asking (probe.go).
package demo
