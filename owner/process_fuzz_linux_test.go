package owner

import (
	"fmt"
	"testing"
)

// For any identity of a peer: this process has not ended, and
// only the end of a process in the same boot and namespaces is visible.
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
			t.Fatalf("%q has ended, but is not visible", identity)
		}
		if gone, _ := processGone(ours); gone {
			t.Fatal("this process has ended")
		}
	})
}
