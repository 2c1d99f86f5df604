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

// A backup is a copy of the data directories of all members that keep the tables, taken while none of
// them runs, so that it is one state of the store.

// copyDir is where the backup is, and nextCopyDir where the next one is made.
const (
	copyDir     = "backup"
	nextCopyDir = "backup.next"
)

// CopiedAt is when the backup was taken; the zero time if there is none.
func (c *Cluster) CopiedAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.copiedAt
}

// Backup stops the members that keep the tables (SIGSTOP), copies their data, and lets them go on.
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

// Restore replaces the data of all members that keep the tables by the backup. What they have now
// is the next backup. No process of theirs may run.
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
		return err // of an attempt that failed
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

// empty removes what a directory contains. The directory itself may be a mount point.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

const copyPatience = time.Minute

// copyTree copies what a directory contains. Logs of etcd are mostly holes, which stay holes.
func copyTree(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), copyPatience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "cp", "--archive", "--sparse=always", from+"/.", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copying %s: %w: %s", from, err, out)
	}
	return nil
}
