package cluster

import (
	"io"
	"time"

	"github.com/leasehold-dev/leasehold/internal/chaos/lan"
)

// A Shape is where managers have their tables.
type Shape string

// The shapes.
const (
	Etcd     Shape = "etcd"     // each has a part of a store that they share
	External Shape = "external" // in an etcd cluster of three other processes
	Flease   Shape = "flease"   // nowhere but in memory
)

// Shapes are all of them.
func Shapes() []Shape { return []Shape{Etcd, External, Flease} }

// A Config says what to run.
type Config struct {
	Program string // the leasehold command
	Other   string // another build of it, for upgrades; empty: none
	Shape   Shape
	Dir     string // for data and logs
	Network *lan.Network

	Owners, Callers int
	Watched         int // keys that owners watch
	Registers       int // how many of them callers use
	Workers         int // of each caller
	Every           time.Duration

	Lease time.Duration // of the namespace
	TTL   time.Duration // of leaders
	Drift float64
	Stale time.Duration // of lookups

	// Spare has the first of each role be spared: its process is not ended, so that it can be
	// seen what becomes of one that lives for long.
	Spare bool

	LeasesOff bool // see [actor.OwnerConfig]
	// OwnerProgram is another program for owners, which knows their flags and some more.
	OwnerProgram string
	OwnerArgs    []string

	// Owned and Called read what an owner and a caller write, each time that it is
	// started, until it is gone. Its clock is ahead of ours by the offset.
	Owned, Called func(name string, offset time.Duration, from io.Reader) error
	// Failed is told what makes a run worthless; of a process of the cluster's that ended by
	// itself, and should not have, with a [Crash].
	Failed func(error)
}

// members is how many managers there are, and how many stores, if they are other processes.
const members = 3

// The ports, at each host the same.
const (
	managerPort = 7400
	pagePort    = 7480
	peerPort    = 7500
	clientPort  = 2379
	ownerPort   = 8000
)
