package lookup

import (
	"context"
	"math/rand/v2"

	machine "github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
)

// The maximum number of replies until a lookup leaves its first leader, or a standby.
const (
	FirstStay   = machine.FirstStay
	StandbyStay = machine.StandbyStay
)

// OpenOn is Open with a source of suspensions.
func OpenOn(ctx context.Context, cfg Config, s clock.Source) (*Lookup, error) {
	c := clock.New()
	return open(ctx, cfg, c, clock.NewDetectorOf(c, s), rand.NewPCG(1, 0))
}

// OpenSeeded is Open with a seed, which determines the choice of managers and the jitter.
func OpenSeeded(ctx context.Context, cfg Config, seed uint64) (*Lookup, error) {
	c := clock.New()
	return open(ctx, cfg, c, clock.NewDetector(c), rand.NewPCG(seed, 0))
}
