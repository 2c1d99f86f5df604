//go:build failpoints

package nemesis

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// TestPointsAreSomebodys: of the failpoints of each package it is known who passes them, but for
// those of agents, which no cluster of a chaos run has.
func TestPointsAreSomebodys(t *testing.T) {
	for _, name := range failpoint.Names() {
		if _, known := passedBy[part(name)]; !known && part(name) != "agent" {
			t.Errorf("%s: nobody is struck at it", name)
		}
	}
}
