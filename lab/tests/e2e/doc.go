// Package e2e tests the whole system with real processes: managers as they are
// deployed, the owner and the lookup library as services link them, and etcd
// servers. It has tests and nothing else.
//
// The simulator decides whether the protocol is right; it runs the machines and
// nothing around them. What is left is everything that it cannot see: sockets
// that half work, a process that is killed in the middle of a write, one that is
// stopped and wakes up, a data directory that is not the right one, flags. So
// each test here starts programs on loopback, does something cruel to them, and
// looks from outside.
//
// # How a test is built
//
// A group is managers with what can be done to them. Owners and lookups run in
// the test's own process where they need not die, so that their answers can be
// watched: steady asks owners about their keys a thousand times a second, and
// exclusive looks for two that have the same one. An owner that is killed or
// stopped is a copy of the test binary, see owner_process_test.go. That everybody
// has what they should is not guessed from nothing happening any more, but worked
// out with the policy: see settled.
//
// # Time
//
// Computers that run tests are slow, and sometimes very slow. So nothing here
// asserts that something is fast, except where the alternative is to wait for a
// time that the test has made much longer. Waiting is for an event, with a
// deadline that is never met unless something is broken. Leases that must be
// kept are long, and leases that must run out are short.
//
// What processes logged is printed if a test fails. No process outlives its
// test, nor the test binary.
package e2e
