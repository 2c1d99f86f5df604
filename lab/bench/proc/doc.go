// Package proc starts the processes of benchmarks: managers, members of etcd and
// ZooKeeper, and load generators.
//
// All but managers are the program itself, started again with a role that [Play]
// finds on its command line. The parent calls their methods by JSON-RPC on standard
// input and output. A process ends when its standard input does, so none outlives
// its parent.
package proc
