package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Fill leaves no room on the disk of a member.
func (m *Member) Fill() error {
	var room unix.Statfs_t
	if err := unix.Statfs(m.disk, &room); err != nil {
		return fmt.Errorf("%s: %w", m.disk, err)
	}
	f, err := os.Create(filepath.Join(m.disk, ballast))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it has nothing in it
	if size := int64(room.Bavail) * room.Bsize; size > 0 {
		return unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	return nil
}
