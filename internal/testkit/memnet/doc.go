// Package memnet is a network in memory: hosts that listen and dial, can be cut off, frozen and killed. It
// works on virtual time, in bubbles of testing/synctest.
//
// A connection behaves like TCP. Data arrives in order, after the network's latency, and so does the end
// of the stream. To dial or to be refused takes no time. A cut holds back data and dials until it is
// healed. A host that dies resets its connections, which a cut delays, too. A frozen host neither reads
// nor writes: to others it looks like a stopped process.
//
// Everything is under the one lock of its network, so that the order of events is clear.
package memnet
