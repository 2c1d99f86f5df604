package byrecord

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
)

// A higherTerm is a term above the record's that an owner or another manager has received, or that the record had
// before the store was restored.
type higherTerm struct {
	term  leasehold.Term // 0 if there is none
	at    mono.Instant   // when it was reported
	floor uint64         // highest floor of a record that the store has lost
	// renounced is when this manager last ended its leadership because of it, and renouncements how
	// often.
	renounced     mono.Instant
	renouncements int
}
