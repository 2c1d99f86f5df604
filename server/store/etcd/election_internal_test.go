package etcd

import (
	"strings"
	"testing"
	"time"
)

// TestElectionTimeoutAndHeartbeat: members use the configured election timeout, and a heartbeat
// interval of a tenth of it.
func TestElectionTimeoutAndHeartbeat(t *testing.T) {
	for timeout, want := range map[time.Duration][2]uint{
		0:               {1000, 100},
		MinElection:     {500, 50},
		3 * time.Second: {3000, 300},
	} {
		c := EmbedConfig{Dir: t.TempDir(), Election: timeout}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
		ec, err := c.etcd(c.Dir, "token")
		if err != nil || ec.ElectionMs != want[0] || ec.TickMs != want[1] {
			t.Errorf("timeout %v: election after %d ms and heartbeat every %d ms (%v), want %v", timeout, ec.ElectionMs, ec.TickMs, err, want)
		}
	}
	for _, timeout := range []time.Duration{-time.Second, MinElection - 1, time.Minute} {
		c := EmbedConfig{Dir: t.TempDir(), Election: timeout}
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), "want 500ms to 50s") {
			t.Errorf("invalid timeout %v: %v", timeout, err)
		}
	}
}
