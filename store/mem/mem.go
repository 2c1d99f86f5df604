// Package mem is a store in memory, for tests and for trying things out. It
// passes the same suite as the stores that survive a crash.
package mem

import (
	"github.com/leasehold-dev/leasehold/internal/runtime/store"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/kv"
	"github.com/leasehold-dev/leasehold/internal/runtime/store/memdb"
)

// A Disk is what stores keep their data on. It outlives the stores that are
// opened on it, as a disk outlives processes. It
// may be used from many goroutines at once.
type Disk struct {
	db memdb.DB
}

// NewDisk returns an empty disk.
func NewDisk() *Disk { return &Disk{} }

// Open returns a store on the disk. Several stores on one disk are a group of
// managers' view of one store; closing one of them does nothing to the others.
func (d *Disk) Open() *Store { return &Store{kv.New(&d.db, kv.Config{})} }

// A Store keeps everything in memory. It is a store for package manager, may be shared
// by several managers of one process, and never answers Unknown but to a
// context that has ended.
type Store struct {
	*kv.Store
}

var _ store.Store = (*Store)(nil)

// New returns an empty store on a disk of its own.
func New() *Store { return NewDisk().Open() }
