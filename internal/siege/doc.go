// Package siege has the tests in which somebody attacks.
//
// A castle is a manager that runs as a process of its own, from cmd/leasehold, with honest
// owners and lookups that use it all the while. Each test does to it what no honest party
// would, and says what is to come of it. Besides, and that is in the kit and not in each
// test, the honest must not notice: no lease of theirs is lost or moved, no lookup hears of
// a loss, renewals go on, somebody new gets in, and the manager's memory does not grow by
// more than a bound.
//
// To add a case, add a line to one of the tables: what it does, and what comes of it. A
// [rogue] speaks HTTP/2 frame by frame, a crowd is processes with thousands of connections
// each, and castle.during runs whatever else there is to try.
//
// The tests are for Linux, where a process tells how much memory it has.
package siege
