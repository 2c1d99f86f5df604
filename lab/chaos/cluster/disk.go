package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// Members that store the tables have a small disk each, which can be filled: a tmpfs in a mount namespace.
// One idle process holds that namespace. The disks end with it.

// diskSize is enough for a store that prepares two files of 64 MiB for its log, and longDisk for one that
// runs long and keeps five of them.
const (
	diskSize = 192 << 20
	longDisk = 512 << 20
)

// Keepers returns the members that store the tables. Each has a disk that can be filled.
func (c *Cluster) Keepers() []*Member {
	switch c.cfg.Shape {
	case Etcd:
		return c.Managers
	case External:
		return c.Stores
	case Flease, Embedded:
	}
	return nil
}

func (c *Cluster) mount() error {
	var script strings.Builder
	size := diskSize
	if c.cfg.Spare {
		size = longDisk
	}
	for _, m := range c.Keepers() {
		dir := c.dataDir(m)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		fmt.Fprintf(&script, "mount -t tmpfs -o size=%d,mode=700 leasehold-chaos '%s' && ", size, dir)
	}
	script.WriteString("echo ready && exec sleep infinity")
	ready := make(chan error, 1)
	c.disks.Name, c.disks.Ended = "the disks", c.cfg.Failed
	c.disks.Launch = proc.Launch{
		Program: "unshare", Args: []string{"--mount", "--propagation", "private", "sh", "-c", script.String()},
		Log: filepath.Join(c.cfg.Dir, "disks.log"), Where: c.Operator.Do,
		Output: func(r io.Reader) error {
			_, err := bufio.NewReader(r).ReadString('\n')
			ready <- err
			_, _ = io.Copy(io.Discard, r)
			return nil
		},
	}
	if err := c.disks.Start(); err != nil {
		return err
	}
	if err := <-ready; err != nil {
		return fmt.Errorf("mounting small disks: %w; %s", err, proc.Tail(c.disks.Launch.Log))
	}
	holder := "/proc/" + strconv.Itoa(c.disks.Pid())
	for _, m := range c.Keepers() {
		m.disk = holder + "/root" + c.dataDir(m)
		m.within = []string{"nsenter", "--mount=" + holder + "/ns/mnt", "--"}
	}
	return nil
}

// ballast is the file that fills a disk.
const ballast = "ballast"

// Fill fills the disk of a member.
func (m *Member) Fill() error {
	f, err := os.Create(filepath.Join(m.disk, ballast))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // the content does not matter
	for zeros := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(zeros)
	}
	if errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

// Empty removes the file that fills the disk.
func (m *Member) Empty() error { return os.Remove(filepath.Join(m.disk, ballast)) }
