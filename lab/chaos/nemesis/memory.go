package nemesis

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// starve limits the memory of a process to up to 4 MB more than it has. Go's runtime ends a
// process that gets no memory; then a supervisor starts it again. So it may crash for a while.
func starve() deed {
	return process(1, mortal(anyTimed), func(s Strike, m *cluster.Member) error {
		m.Excuse(true)
		has, err := dataOf(m.Pid())
		if err != nil {
			return nil //nolint:nilerr // it is gone, and will be started again
		}
		return limit(m.Pid(), fmt.Sprint(has+uint64(s.How*4e6)))
	}, func(m *cluster.Member) error {
		err := limit(m.Pid(), "unlimited")
		m.Excuse(false)
		return err
	})
}

// dataOf is how much memory a process has of the kind that the limit is about.
func dataOf(pid int) (uint64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := p.NewStatus()
	return status.VmData, err
}

// limit limits the memory of a process, if it is still there.
func limit(pid int, bytes string) error {
	cmd := exec.Command("prlimit", "--pid", fmt.Sprint(pid), "--data="+bytes+":unlimited")
	cmd.Env = []string{"LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "No such process") {
		return fmt.Errorf("limiting the memory of process %d: %w: %s", pid, err, out)
	}
	return nil
}
