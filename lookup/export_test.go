package lookup

import (
	"context"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"

	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// How many answers of a leader a lookup takes at most, when it has just met it, and how
// many of a standby.
const (
	FirstStay   = machine.FirstStay
	StandbyStay = machine.StandbyStay
)

// OpenOn is Open on a computer that sleeps as s says.
func OpenOn(ctx context.Context, cfg Config, s clock.Source) (*Lookup, error) {
	c := clock.New()
	return open(ctx, cfg, c, clock.NewDetectorOf(c, s))
}
