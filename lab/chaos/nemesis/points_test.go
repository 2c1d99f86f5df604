//go:build failpoints

package nemesis

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
)

// TestEveryFailpointIsPassed: passedBy has the failpoints of all packages, except for those of agents, which are
// not in a chaos run.
func TestEveryFailpointIsPassed(t *testing.T) {
	for _, name := range failpoint.Names() {
		if _, known := passedBy[part(name)]; !known && part(name) != "agent" {
			t.Errorf("%s: no process is struck at it", name)
		}
	}
}
