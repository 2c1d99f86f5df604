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

// A HeldError reports that a resource has another holder. It is of kind
// [leasehold.ErrNotOwner].
type HeldError struct {
	Resource string
	// Holder is the member that holds the lease: this one if another call of this
	// process holds it, or waits for it.
	Holder ID
	// Waiting is true if another call of this process waits for the resource. The
	// holder is then unknown, and Fence and Until are zero.
	Waiting bool
	Fence   uint64
	Until   time.Time // when the lease expires unless it is renewed, by the holder's clock
}

func (e *HeldError) Error() string {
	if e.Waiting {
		return fmt.Sprintf("acquire %q: another call of this process, member %d, waits for it", e.Resource, e.Holder)
	}
	return fmt.Sprintf("acquire %q: member %d holds it until %s, unless it is renewed", e.Resource, e.Holder,
		e.Until.Format(time.RFC3339Nano))
}

// Unwrap returns the kind.
func (e *HeldError) Unwrap() error { return leasehold.ErrNotOwner }

func errClosed(op, subject string) error {
	return leasehold.Errorf(op, leasehold.ErrClosed, subject, "the node is closed")
}

// An ending is the reason why a lease has ended.
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
	lasting:      "it has not ended",
	released:     "it was released",
	closed:       "the node was closed",
	notRenewed:   "it expired before it was renewed: too few members replied, or this process was too slow",
	clockStepped: "the wall clock of this computer was set",
	clockWrong:   "the wall clock of this computer differs from those of most other members",
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
