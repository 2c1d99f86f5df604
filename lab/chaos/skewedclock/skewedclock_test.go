package skewedclock

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReplacedTextExists: the replaced text is in the files. Whether the result builds and has skewed clocks
// is tested by TestStorms.
func TestReplacedTextExists(t *testing.T) {
	for name := range changes() {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "runtime", "clock", name))
		if err != nil {
			t.Fatal(err)
		}
		changed, err := replace(name, string(text))
		if err != nil || changed == string(text) {
			t.Errorf("%s is not changed: %v", name, err)
		}
		if _, err := replace(name, changed); err == nil {
			t.Errorf("%s was replaced a second time", name)
		}
	}
}

func TestEnvironmentVariables(t *testing.T) {
	if got := Rate(1.25); got != "CHAOS_CLOCK_RATE=1.25" {
		t.Errorf("got %q", got)
	}
	if got := Wall(-time.Second, 1, 2); got != "CHAOS_WALL_CLOCK=-1000000000 1 2" {
		t.Errorf("got %q", got)
	}
}

func TestPointsIn(t *testing.T) {
	got := pointsIn(`arm failpoints: none/none=kill: there is no "none/none": there are owner/before-send, etcd/committed, owner/before-send`)
	if len(got) != 2 || got[0] != "etcd/committed" || got[1] != "owner/before-send" {
		t.Errorf("got %q", got)
	}
}
