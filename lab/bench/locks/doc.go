// Package locks has lock services as contestants: etcd, used in several ways, and
// ZooKeeper, with the processes of their servers and clients that acquire locks. A
// [Contest] gives each of them turns.
package locks
