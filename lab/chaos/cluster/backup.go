package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A backup is a copy of the data directories of all members that store the tables. It is taken while none of
// them runs, so it is one state of the store.

// copyDir is the directory of the backup, and nextCopyDir that of the next one.
const (
	copyDir     = "backup"
	nextCopyDir = "backup.next"
)

// CopiedAt returns the time of the backup; the zero time if there is none.
func (c *Cluster) CopiedAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copiedAt
}

// Backup stops the members that store the tables (SIGSTOP), copies their data, and continues them.
func (c *Cluster) Backup() error {
	var failed error
	for _, m := range c.Keepers() {
		failed = errors.Join(failed, m.Pause())
	}
	failed = errors.Join(failed, c.copyOut())
	for _, m := range c.Keepers() {
		failed = errors.Join(failed, m.Resume())
	}
	return errors.Join(failed, c.keepCopy())
}

// Restore replaces the data of all members that store the tables by the backup. The replaced data is the next
// backup. None of these members may run.
func (c *Cluster) Restore() error {
	if err := c.copyOut(); err != nil {
		return err
	}
	for _, m := range c.Keepers() {
		if err := empty(m.disk); err != nil {
			return err
		}
		if err := copyTree(filepath.Join(c.cfg.Dir, copyDir, m.Name), m.disk); err != nil {
			return err
		}
	}
	return c.keepCopy()
}

func (c *Cluster) copyOut() error {
	if err := os.RemoveAll(filepath.Join(c.cfg.Dir, nextCopyDir)); err != nil {
		return err // of a failed attempt
	}
	for _, m := range c.Keepers() {
		to := filepath.Join(c.cfg.Dir, nextCopyDir, m.Name)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		if err := copyTree(m.disk, to); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) keepCopy() error {
	is := filepath.Join(c.cfg.Dir, copyDir)
	if err := os.RemoveAll(is); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.copiedAt = time.Now()
	return os.Rename(filepath.Join(c.cfg.Dir, nextCopyDir), is)
}

// empty removes the content of a directory, which may be a mount point.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

const copyPatience = time.Minute

// copyTree copies the content of a directory. Logs of etcd are mostly holes, and stay sparse.
func copyTree(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), copyPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "cp", "--archive", "--sparse=always", from+"/.", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copying %s: %w: %s", from, err, out)
	}
	return nil
}
