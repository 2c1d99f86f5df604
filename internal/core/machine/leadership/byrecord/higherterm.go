package byrecord

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A higherTerm is a term above the record's that an owner or another manager has received.
type higherTerm struct {
	term leasehold.Term // 0 if there is none
	at   mono.Instant   // when it was reported
	// renounced is when this manager last ended its leadership because of it, and renouncements how
	// often.
	renounced     mono.Instant
	renouncements int
}
