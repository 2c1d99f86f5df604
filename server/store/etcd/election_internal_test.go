package etcd

import (
	"strings"
	"testing"
	"time"
)

// TestElections: members elect after the time that they are told, and hear of a leader often
// enough for that.
func TestElections(t *testing.T) {
	for told, want := range map[time.Duration][2]uint{
		0:               {1000, 100},
		MinElection:     {500, 50},
		3 * time.Second: {3000, 300},
	} {
		c := EmbedConfig{Dir: t.TempDir(), Election: told}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
		ec, err := c.etcd(c.Dir, "token")
		if err != nil || ec.ElectionMs != want[0] || ec.TickMs != want[1] {
			t.Errorf("told %v, they elect after %d ms and beat every %d ms (%v), want %v", told, ec.ElectionMs, ec.TickMs, err, want)
		}
	}
	for _, told := range []time.Duration{-time.Second, MinElection - 1, time.Minute} {
		c := EmbedConfig{Dir: t.TempDir(), Election: told}
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), "want 500ms to 50s") {
			t.Errorf("told %v: %v", told, err)
		}
	}
}
