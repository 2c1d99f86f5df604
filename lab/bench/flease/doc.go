// Command flease compares package flease with etcd and ZooKeeper in one run, on
// one computer: how many leases can be acquired in a second? It draws the
// figures of the Flease paper anew. docs/flease.md has what it found.
//
//	cd lab/bench && go run ./flease                  all of it, in some minutes
//	cd lab/bench && go run ./flease -quick           the contest alone, short and rough
//	cd lab/bench && go run ./flease -only disk       one part: contest, batches, disk or groups
//	cd lab/bench && go run ./flease -docs ../docs    also writes the plots, and the tables of flease.md
//
// Everyone is three processes, on the loopback. Flease's three each acquire a
// batch of leases on new resources, all at the same time, as
// all machines do in the paper. Lock services get as many requests, from 256
// clients in this process. What counts is the time from the first request to the
// last answer. Giving leases back is not measured.
//
// The processes are this program, started again with a role; see [roles]. They
// end when their standard input does.
package main
