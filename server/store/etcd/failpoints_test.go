//go:build failpoints

package etcd_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// runChild runs a child on a directory until it has reported a number of commits or has ended. It
// returns the last commit that the child reported.
func runChild(t *testing.T, dir, armed string, commits int) (last leasehold.LSN, died bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childDir+"="+dir, failpoint.Variable+"="+armed)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	reported := 0
	for ; reported < commits && lines.Scan(); reported++ {
		if strings.HasPrefix(lines.Text(), "error") {
			t.Fatalf("with %q: %s", armed, lines.Text())
		}
		_, _ = fmt.Sscanf(lines.Text(), "done %d", &last)
	}
	_ = cmd.Process.Kill() // it may be dead already
	_ = cmd.Wait()
	return last, reported < commits
}

// TestEveryPoint: a process that dies or pauses at any failpoint restarts on its directory with
// all commits.
func TestEveryPoint(t *testing.T) {
	for _, point := range failpoint.Names() {
		if !strings.HasPrefix(point, "etcd/") {
			continue
		}
		for _, after := range []int{0, 1} { // a first start writes the marker twice
			if point == "etcd/ready-before-marker" && after > 0 {
				continue // once in a start
			}
			t.Run(fmt.Sprintf("%s/after %d", point, after), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				last, died := runChild(t, dir, fmt.Sprintf("%s=kill:after=%d", point, after), 5)
				if !died {
					t.Errorf("the failpoint was not reached: committed up to %d", last)
				}
				if again, died := runChild(t, dir, fmt.Sprintf("%s=pause:for=100ms:after=%d", point, after), 5); died || again < last {
					t.Errorf("committed up to %d after %d, died: %t", again, last, died)
				} else {
					last = again
				}
				state, err := embed(t, etcd.EmbedConfig{Dir: dir}).Load(t.Context(), "crash")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := state.Replay(); err != nil || state.End() < last {
					t.Errorf("the log ends at %d (%v), and %d was committed", state.End(), err, last)
				}
			})
		}
	}
}
