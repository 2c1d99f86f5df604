// Package attacks has the tests in which somebody attacks.
//
// A castle is a manager that runs as a process of its own, from cmd/leasehold, with honest
// owners and lookups that use it all the while. Each test does to it what no honest party
// would, and says what is to come of it. Besides, and that is in the kit and not in each
// test, the honest must not notice: no lease of theirs is lost or moved, no lookup hears of
// a loss, renewals go on, somebody new gets in, and the manager's memory does not grow by
// more than a bound.
//
// Most castles have walls: certificates, and a policy that says who may do what, which a
// keep has. It also forges certificates of every kind, since it has the keys of the CAs.
// What is refused to somebody who is known must be in the manager's audit.
//
// To add a case, add a line to one of the tables: what it does, and what comes of it. A
// [rogue] speaks HTTP/2 frame by frame, a crowd is processes with thousands of connections
// each, and castle.attack runs whatever else there is to try. All are counted, and the last
// line that the tests print says how many there were.
//
// The tests are for Linux, where a process tells how much memory it has.
package attacks
