// Package demo runs a whole Leasehold on one computer and breaks it: managers, servers of a
// small presence service, callers, and a nemesis that kills the leader and the servers
// meanwhile. Or it restarts all servers, one after the other, without any loss; or it kills all
// managers for a time. Managers and servers are processes, callers and nemesis goroutines of the
// parent. No process outlives the parent (package proc).
//
// A server is what a user of the libraries would write: an HTTP server with a leasemap
// (server.go, handler.go). Callers send HTTP requests with leasehttp's Transport (request.go).
//
// Dual ownership: every server checks its leases on the keys of all users continuously, and sends
// the checks that succeeded, and those of each request, through a pipe to the parent, with the
// time on the clock that all processes of a computer share. An oracle compares them (package
// oracle), independently of the lease table. Killed processes have no stale state, so servers are
// also stopped for longer than their leases last, and resumed (faults.go).
//
// Lost state: callers number their writes and record the acknowledged ones. An older answer is
// stale (users.go). An answer without it is right only if a loss that covers the key is notified
// soon; otherwise the loss was silent (tally.go). Before a rolling restart or an outage every user
// sets a status, and after it every one is read (everyone.go).
//
// Availability: requests are due at a steady rate, whatever the result of earlier ones, and count
// from when they were due (load.go). A prober measures for how long a key has no answer while it
// moves (probe.go).
package demo
