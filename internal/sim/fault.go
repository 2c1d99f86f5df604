package sim

import (
	"fmt"
	"slices"
)

// A Fault is a kind of trouble that the simulator makes.
type Fault uint8

// The faults.
const (
	OwnerCrash     Fault = iota // an owner dies; it may come back under its name, at once or later, or under another
	OwnerPause                  // an owner is stopped, while its clock runs on
	OwnerSuspend                // an owner's computer sleeps: its clock stands still
	OwnerLeave                  // an owner closes properly, and comes back later
	OwnerTwin                   // a second process with an owner's name is started
	ManagerCrash                // a manager dies and comes back
	ManagerPause                // a manager is stopped, while its clock runs on
	ManagerResign               // a manager is shut down properly and comes back
	ManagerSuspend              // a manager's computer sleeps
	LookupCrash                 // a lookup dies and comes back
	LookupPause                 // a lookup is stopped
	LookupSuspend               // a lookup's computer sleeps
	LinkCut                     // two processes do not hear each other
	LinkOneWay                  // one process does not hear another
	Isolate                     // a process hears nobody, or nobody hears it, or both
	Loss                        // messages are lost
	Duplicate                   // messages arrive twice
	Delay                       // messages take long, and overtake each other
	Misroute                    // messages reach the wrong process
	Hostile                     // messages that no honest peer would send
	StoreSlow                   // the store takes seconds
	StoreUnknown                // requests to the store, or its answers, are lost
	StoreDown                   // the store has no quorum
	StoreCut                    // a manager cannot reach the store
	StoreStale                  // reads that need not be linearizable are old, and watches are late
	ClockRate                   // clocks change their rates, within the bound
	ClockBeyond                 // an owner's clock runs more slowly than the bound allows
	Starve                      // timers fire late
	PolicyBroken                // the partition policy returns nonsense
	Reconfigure                 // an operator gives a namespace shorter or longer leases
	Delete                      // an operator deletes a namespace, and creates it again
	Drain                       // an operator drains an owner, and may change their mind
	MoveRange                   // an operator moves a range
	MoveCrash                   // the source or the target of a move dies in the middle of it, or the leader
	Upcalls                     // an application's exporters and importers fail or hang
	ManagerRelapse              // managers without a store: an old leader meets one that was restarted
	StoreRestore                // the store is restored from an old backup, whether managers run or not
	Outage                      // all managers die, stop, or are cut off, or the store is down: for a second or for a day
	StoreLag                    // the store is slow for one manager, and for no other
	faults
)

var faultNames = [faults]string{
	"owner-crash", "owner-pause", "owner-suspend", "owner-leave", "owner-twin",
	"manager-crash", "manager-pause", "manager-resign", "manager-suspend", "lookup-crash", "lookup-pause", "lookup-suspend",
	"link-cut", "link-one-way", "isolate", "loss", "duplicate", "delay", "misroute", "hostile",
	"store-slow", "store-unknown", "store-down", "store-cut", "store-stale", "clock-rate", "clock-beyond", "starve", "policy-broken", "reconfigure", "delete",
	"drain", "move-range", "move-crash", "upcalls", "manager-relapse", "store-restore", "outage", "store-lag",
}

func (f Fault) String() string {
	if f < faults {
		return faultNames[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// FaultNames returns the names of all faults.
func FaultNames() []string { return slices.Clone(faultNames[:]) }

func faultByName(name string) (Fault, bool) {
	i := slices.Index(faultNames[:], name)
	return Fault(max(i, 0)), i >= 0
}
