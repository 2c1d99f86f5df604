package owner

import (
	"fmt"
	"testing"
)

// FuzzProcessGone: whatever a peer says its process is called, ours is not taken for gone, and
// only one of this computer, in our own space of processes, can be known to be gone.
func FuzzProcessGone(f *testing.F) {
	self, err := identify()
	if err != nil {
		f.Skip(err)
	}
	ours := fmt.Sprintf("%s %s %s %d %d", self.boot, self.pidSpace, self.timeSpace, self.pid, self.start)
	f.Add(ours)
	f.Add(fmt.Sprintf("%s %s %s %d %d", self.boot, self.pidSpace, self.timeSpace, -1, 0))
	f.Add(fmt.Sprintf("%s %s %s %d %d", self.boot, self.pidSpace, self.timeSpace, 1<<31-1, 0))
	f.Add("a b c 1 2")
	f.Add("")
	f.Fuzz(func(t *testing.T, identity string) {
		gone, knowable := processGone(identity)
		if gone && (!knowable || len(identity) < len(self.boot)) {
			t.Fatalf("%q is gone, and cannot be known", identity)
		}
		if gone, _ := processGone(ours); gone {
			t.Fatal("this process is gone")
		}
	})
}
