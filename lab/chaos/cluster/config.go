// Package cluster runs managers with their store, owners and callers: real processes on hosts of their own.
package cluster

import (
	"io"
	"time"

	"github.com/leasehold-dev/leasehold/lab/chaos/lan"
)

// A Shape is the kind of store of the managers.
type Shape string

// The shapes.
const (
	Etcd     Shape = "etcd"     // in an etcd cluster of which each manager is a member
	External Shape = "external" // in an etcd cluster of three other processes
	Flease   Shape = "flease"   // in memory only
	Embedded Shape = "cluster"  // in memory only, inside the servers: package cluster
)

// Shapes are all shapes.
func Shapes() []Shape { return []Shape{Etcd, External, Flease, Embedded} }

// Stored reports whether a store keeps the tables.
func (s Shape) Stored() bool { return s == Etcd || s == External }

// Settings of all clusters.
const (
	Drift     = 1.2 // the drift bound
	Watched   = 128 // keys that owners watch
	Registers = 16  // the first of them, which callers use
	Stale     = 4 * time.Second

	members   = 3 // managers, and stores if they are other processes
	workers   = 2 // of each caller
	callEvery = 20 * time.Millisecond
)

// A Config describes a cluster.
type Config struct {
	Program string // the leasehold-lab command
	Other   string // another build of it, for upgrades; empty: none
	Shape   Shape
	Dir     string // for data and logs
	Network *lan.Network

	Owners, Callers int
	Lease           time.Duration // of the namespace
	TTL             time.Duration // of leaders

	// Spare excludes the first process of each role from faults that end it, so that it runs long.
	Spare bool

	LeasesOff bool // see [actor.OwnerConfig]
	// OwnerProgram is another program for owners, with additional flags.
	OwnerProgram string
	OwnerArgs    []string

	// Owned and Called read the output of an owner and a caller to its end, at each start. The clock of the
	// process is ahead of that of this process by the offset.
	Owned, Called func(name string, offset time.Duration, from io.Reader) error
	// Failed receives errors that end a run. An unexpected end of a process is a [Crash].
	Failed func(error)
}

const (
	managerPort = 7400
	pagePort    = 7480
	peerPort    = 7500
	clientPort  = 2379
	ownerPort   = 8000
)
