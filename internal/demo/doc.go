// Package demo runs a whole Leasehold on one computer and breaks it: managers,
// owners of a small presence service, callers, and somebody who kills the
// leader and the owners while the callers go on.
//
// Managers and owners are processes of their own, so that a kill is the real
// thing: kill -9, no last words. Callers and the one who kills are goroutines of
// the parent. Nothing outlives the parent: see process.go.
//
// # How dual ownership is judged
//
// Not by the managers' word. Every owner tells the parent, through a pipe,
// about each Check and each Held that succeeded, with the time on the clock
// that all processes of a computer share (record.go). An oracle in the parent
// compares what the owners believed about each key (oracle.go). If two of them
// believed in the same instant that they owned a key, it finds out, whatever
// the lease table says.
//
// Besides, callers number what they store and remember what was acknowledged.
// An answer from before that is counted as stale (users.go).
package demo
