package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Fill leaves no room on the disk of a member.
func (m *Member) Fill() error {
	f, err := os.Create(filepath.Join(m.disk, ballast))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it has nothing in it
	return occupy(func() (int64, error) {
		var disk unix.Statfs_t
		if err := unix.Statfs(m.disk, &disk); err != nil {
			return 0, fmt.Errorf("%s: %w", m.disk, err)
		}
		return int64(disk.Bavail) * disk.Bsize, nil
	}, func(size int64) error { return unix.Fallocate(int(f.Fd()), 0, 0, size) })
}

// fillings is how often a disk may be found fuller than it just was.
const fillings = 100

// occupy takes all the room that there is, while somebody else takes some, too: there may be
// less by the time that it is asked for, and then nothing is had.
func occupy(room func() (int64, error), take func(size int64) error) error {
	for range fillings {
		size, err := room()
		if err != nil || size <= 0 {
			return err
		}
		if err := take(size); !errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
	return fmt.Errorf("somebody took what was free %d times: %w", fillings, unix.ENOSPC)
}
