package flease

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
)

const (
	opAcquire = "acquire"
	opRelease = "release"
	opWatch   = "watch"
	opClose   = "close flease"
)

// A HeldError says who has a resource that was to be acquired. It is of the kind
// [leasehold.ErrNotOwner].
type HeldError struct {
	Resource string
	// Holder is who has it. It is this very member if another call of this
	// process has it, or was first to ask for it.
	Holder ID
	// Waiting is true if another call of this process was first to ask for it, and
	// has not been answered yet. Whether anybody has it is not known then, and
	// Fence and Until are zero.
	Waiting bool
	Fence   uint64
	Until   time.Time // when it ends unless it is renewed, by the holder's clock
}

func (e *HeldError) Error() string {
	if e.Waiting {
		return fmt.Sprintf("acquire %q: another call of this process, member %d, waits for it", e.Resource, e.Holder)
	}
	return fmt.Sprintf("acquire %q: member %d holds it until %s, unless it is renewed", e.Resource, e.Holder,
		e.Until.Format(time.RFC3339Nano))
}

// Unwrap gives the kind.
func (e *HeldError) Unwrap() error { return leasehold.ErrNotOwner }

func errClosed(op, subject string) error {
	return leasehold.Errorf(op, leasehold.ErrClosed, subject, "the node is closed")
}

// An ending is why a lease is over.
type ending uint8

const (
	lasting ending = iota
	released
	closed
	notRenewed
	clockStepped
	clockWrong
	slept
	gaveWay
)

var endings = [...]string{
	lasting:      "it is not over",
	released:     "it was released",
	closed:       "the node was closed",
	notRenewed:   "it was not renewed in time: too few members answered, or this process was too slow",
	clockStepped: "the wall clock of this computer was set",
	clockWrong:   "most other members find the wall clock of this computer wrong",
	slept:        "the computer was suspended",
	gaveWay:      "another process runs as the same member",
}

func (e ending) String() string { return endings[e] }

func (e ending) err(resource string) error {
	switch e {
	case lasting:
		return nil
	case released, closed:
		return leasehold.Errorf("lease", leasehold.ErrClosed, resource, "%s", e)
	default:
		return leasehold.Errorf("lease", leasehold.ErrNotOwner, resource, "lost: %s", e)
	}
}
