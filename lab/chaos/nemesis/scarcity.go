package nemesis

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/leasehold-dev/leasehold/lab/chaos/cluster"
)

// scarce limits a resource of a process, which may crash until the limit is removed and it has restarted.
func scarce(whom choice, take func(Strike, *cluster.Member) error, restore func(*cluster.Member) error) deed {
	return process(1, mortal(whom), func(s Strike, m *cluster.Member) error {
		m.Excuse(true)
		return take(s, m)
	}, func(m *cluster.Member) error {
		defer m.Excuse(false)
		return restore(m)
	})
}

// fill fills the disk of a member that stores the tables. A store that cannot write its log exits.
func fill() deed {
	return scarce(anyKeeper, func(_ Strike, m *cluster.Member) error { return m.Fill() }, (*cluster.Member).Empty)
}

// starve limits the memory of a process to at most 4 MB more than it uses. Go's runtime ends a process that
// gets no memory.
func starve() deed {
	return scarce(anyTimed, func(s Strike, m *cluster.Member) error {
		p, err := procfs.NewProc(m.Pid())
		if err != nil {
			return nil //nolint:nilerr // it has ended, and will be restarted
		}
		status, err := p.NewStatus()
		if err != nil {
			return nil //nolint:nilerr // the same
		}
		return limit(m.Pid(), fmt.Sprint(status.VmData+uint64(s.How*4e6)))
	}, func(m *cluster.Member) error { return limit(m.Pid(), "unlimited") })
}

// limit limits the memory of a process, if it still runs.
func limit(pid int, bytes string) error {
	cmd := exec.Command("prlimit", "--pid", fmt.Sprint(pid), "--data="+bytes+":unlimited")
	cmd.Env = []string{"LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "No such process") {
		return fmt.Errorf("limiting the memory of process %d: %w: %s", pid, err, out)
	}
	return nil
}
