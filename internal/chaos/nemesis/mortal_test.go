package nemesis

import (
	"context"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/chaos/cluster"
)

// TestTheSparedLive: whatever ends a process is not done to one that is spared, and whatever
// does not may be.
func TestTheSparedLive(t *testing.T) {
	spared := &cluster.Member{Spared: true}
	n := &Nemesis{Cluster: &cluster.Cluster{Managers: []*cluster.Member{spared}}}
	for name, do := range map[string]deed{
		"kill": kill(anyManager), "two": killTwo(managers), "restart": restart(anyManager),
		"upgrade": upgrade, "shift": shift, "drift": drift, "set": set, "stray": stray(anyManager, 1), "starve": starve,
	} {
		if victims, _, err := do(context.Background(), n, Strike{}); victims != "" || err != nil || !spared.Claim() {
			t.Errorf("%s: %q, %v", name, victims, err)
		}
		spared.Release()
	}
	if claim(anyManager(context.Background(), n, Strike{}), 1) == nil {
		t.Error("it cannot be paused either")
	}
}
