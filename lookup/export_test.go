package lookup

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// OpenOn is Open on a computer that sleeps as s says.
func OpenOn(ctx context.Context, cfg Config, s clock.Source) (*Lookup, error) {
	c := clock.New()
	return open(ctx, cfg, c, clock.NewDetectorOf(c, s))
}
