// Command routing asks what a request pays to learn where to go: lookup.Find
// beside the same in libraries that people use for it today.
//
//	cd lab/bench/routing && go run .          all of it, in some minutes
//	cd lab/bench/routing && go run . -quick   1,000 servers only, in seconds
//
// Everyone has the same servers, is asked for the same names of 20 bytes in the
// same order, and gives back the server's address. There are 100, 1,000 and
// 10,000 servers; one core asks, or all do; and the table stays as it is, or a
// server goes and comes back 100 times a second meanwhile.
//
// The libraries do different things for their callers, which each contestant's
// comment says. None of them but ours says who is the owner: they say who should
// be, if everyone has the same list of servers.
//
// It is a module of its own because dskit does not build with the etcd client
// that the other benchmarks use. Without it, which make bench-quick is, it is built
// in half the time:
//
//	cd lab/bench/routing && go run -tags nodskit . -quick
package main
