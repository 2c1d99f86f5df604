package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/internal/chaos/cluster"
)

// starve has a process get little more memory than it has: up to 4 MB. Go's runtime ends a
// process that gets none when it wants some; then a supervisor starts it again. So it may
// crash for a while.
func starve(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	return processBy(mortal(ours), 1, func(s Strike, m *cluster.Member) error {
		m.Excuse(true)
		pid := m.Pid()
		has, err := dataOf(pid)
		if err != nil {
			return nil //nolint:nilerr // it is gone, and will be started again
		}
		return limit(pid, has+uint64(s.How*4e6))
	}, func(m *cluster.Member) error {
		err := limit(m.Pid(), unix.RLIM_INFINITY)
		m.Excuse(false)
		return err
	})(ctx, n, s)
}

// limit limits the memory of a process, if it is still there.
func limit(pid int, bytes uint64) error {
	err := unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil)
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("limiting the memory of process %d: %w", pid, err)
	}
	return nil
}

// dataOf is how much memory a process has of the kind that the limit is about.
func dataOf(pid int) (uint64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return dataIn(string(status))
}
