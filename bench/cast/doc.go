// Package cast has the processes that questions of the benchmark start: the same
// program again, with a role that [Play] finds on its command line. They take
// orders on their standard input, and end when that does. So none outlives the
// one who started it.
//
// Two roles are for every question: a member of etcd and one of ZooKeeper, with
// clients that acquire locks of them.
package cast
