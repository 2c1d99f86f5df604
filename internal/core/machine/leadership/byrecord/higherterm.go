package byrecord

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A higherTerm is a term above the record's that an owner or another manager has heard of.
type higherTerm struct {
	term leasehold.Term // 0 if there is none
	at   mono.Instant   // when we heard of it
	// renounced is when we last gave up a leadership for it, and renouncements how often we did.
	renounced     mono.Instant
	renouncements int
}
