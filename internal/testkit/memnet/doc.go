// Package memnet is a network in memory: hosts that listen and dial, with
// connections that can be cut, hosts that can be frozen, and hosts that die. It
// works on virtual time, in bubbles of testing/synctest.
//
// A connection behaves like one of TCP. What is written arrives in order, after the
// network's latency, and so does the news of its end: until then the other side may
// write, to nobody. To dial takes no time, nor does it to be refused. A cut holds
// everything back, and lets it through when it is healed; who dials across one waits. A
// host that dies resets its connections, unless a cut keeps the others from hearing of
// it.
//
// A frozen host neither reads nor writes. Its goroutines run on as long as they do
// neither: to everybody else it looks like a process that was stopped.
//
// Everything is under the one lock of its network. That is good enough for tests, and
// makes it easy to see what happens first.
package memnet
