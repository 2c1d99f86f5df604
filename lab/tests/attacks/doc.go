// Package attacks tests a manager under attack.
//
// A testbed is a manager that runs in a separate process, from cmd/leasehold, and honest
// owners and lookups that use it during the whole test. Each case sends what no honest
// client would send and states the expected status, alert or close. The testbed, not the
// case, checks the invariants: the honest clients lose no lease, no lookup receives a loss,
// renewals continue, a new client can connect, and the manager's memory grows by less than
// a bound.
//
// Most testbeds have TLS and an access policy. An [authority] issues the certificates. It
// has the keys of all CAs, so it also issues invalid certificates of every kind. A refusal
// of an identified client must be in the manager's audit log.
//
// To add a case, add a line to a table: the input and the expected outcome. A [rawClient]
// writes single HTTP/2 frames, a [connFlood] is processes with thousands of connections
// each, and testbed.attack runs any other function. All cases are counted; the last line of
// the output has the counts.
//
// The tests require Linux: they read the memory of a process from /proc.
package attacks
