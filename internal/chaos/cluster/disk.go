package cluster

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/child"
)

// Those who keep the tables have a small disk each, which can be filled: a file system in
// memory, in a mount namespace. A process holds that namespace, and does nothing else:
// when it is gone, which it is at the latest when we are, so are the disks.

// diskSize is enough for a store that prepares two files of 64 MiB for its log, and longDisk
// for one that runs so long that it has the five that it keeps.
const (
	diskSize = 192 << 20
	longDisk = 512 << 20
)

// disks holds the disks of members.
type disks struct {
	holder child.Child
}

// keepers are the members that keep the tables.
func (c *Cluster) keepers() []*Member {
	switch c.cfg.Shape {
	case Etcd:
		return c.Managers
	case External:
		return c.Stores
	case Flease:
	}
	return nil
}

// mount gives the keepers their disks.
func (c *Cluster) mount() error {
	var script strings.Builder
	size := diskSize
	if c.cfg.Spare {
		size = longDisk
	}
	for _, m := range c.keepers() {
		dir := c.dataDir(m)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		fmt.Fprintf(&script, "mount -t tmpfs -o size=%d,mode=700 leasehold-chaos '%s' && ", size, dir)
	}
	script.WriteString("echo ready && exec sleep infinity")
	ready := make(chan error, 1)
	h := &c.disks.holder
	h.Name, h.Ended = "the disks", func(err error) { c.cfg.Failed(err) }
	h.Launch = child.Launch{
		Program: "unshare", Args: []string{"--mount", "--propagation", "private", "sh", "-c", script.String()},
		Log: filepath.Join(c.cfg.Dir, "disks.log"), Where: c.Operator.Do,
		Output: func(r io.Reader) error {
			_, err := bufio.NewReader(r).ReadString('\n')
			ready <- err
			_, _ = io.Copy(io.Discard, r)
			return nil
		},
	}
	if err := h.Start(); err != nil {
		return err
	}
	if err := <-ready; err != nil {
		return fmt.Errorf("mounting small disks: %w; %s", err, child.Tail(h.Launch.Log))
	}
	for _, m := range c.keepers() {
		m.disk = "/proc/" + strconv.Itoa(h.Pid()) + "/root" + c.dataDir(m)
		m.within = []string{"nsenter", "--mount=/proc/" + strconv.Itoa(h.Pid()) + "/ns/mnt", "--"}
	}
	return nil
}

// Keepers are the members that have a disk which can be filled.
func (c *Cluster) Keepers() []*Member {
	var found []*Member
	for _, m := range c.keepers() {
		if m.disk != "" {
			found = append(found, m)
		}
	}
	return found
}

// ballast is the file with which a disk is filled.
const ballast = "ballast"

// Empty makes room on a disk that was filled.
func (m *Member) Empty() error { return os.Remove(filepath.Join(m.disk, ballast)) }
