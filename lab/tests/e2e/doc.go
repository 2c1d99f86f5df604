// Package e2e tests the whole system with real processes: managers as they are
// deployed, the owner and the lookup library as services link them, and etcd
// servers. It contains only tests.
//
// The simulator verifies the protocol; it runs the machines without their shells.
// These tests cover the rest: sockets that accept and do not reply, a process that
// is killed during a write, one that is stopped and continued, a wrong data
// directory, flags. Each test starts programs on loopback, injects a fault, and
// observes the result from outside.
//
// # Structure of a test
//
// A group is the managers of a test. Owners and lookups run in the test process
// unless they are killed, so that their state can be sampled: steady checks the
// leases of owners a thousand times a second, and exclusive checks that no two
// owners hold the same key. An owner that is killed or stopped is a copy of the
// test binary, see owner_process_test.go. waitForAssignment compares the table with
// the one that the policy computes, so that no test waits for the absence of changes.
//
// # Time
//
// Test machines may be very slow. So no test asserts that an operation is fast,
// unless the alternative is to wait for a timeout that the test has made much
// longer. Tests wait for events, with deadlines that are only reached after a
// defect. Leases that must be kept are long, and leases that must expire are short.
//
// The logs of all processes are printed if a test fails. No process outlives its
// test or the test binary.
package e2e
