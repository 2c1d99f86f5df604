package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/leasehold-dev/leasehold/bench/kit"
)

// A machine is where the contest took place, and what lock services it has.
type machine struct {
	kit.Machine
	Files     string // the file system of the lock services' data
	Etcd      string
	ZooKeeper string
	Java      string
}

// versions are those of the lock services.
func (m *machine) versions() []string {
	all := []string{"etcd " + m.Etcd}
	if m.ZooKeeper != "" {
		all = append(all, "ZooKeeper "+m.ZooKeeper+" on "+m.Java)
	}
	return all
}

// thisMachine describes the computer that we run on, as far as Linux tells. What
// cannot be found out is unknown.
func thisMachine(ctx context.Context, dir string) machine {
	m := machine{Machine: kit.Here(), Files: fileSystem(dir), Etcd: version.Version}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if text, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput(); err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		m.Java = strings.ReplaceAll(first, `"`, "")
	}
	return m
}

// memoryFiles is the name of a file system that no disk is behind.
const memoryFiles = "tmpfs"

// fileSystem names the file system of a directory.
func fileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "unknown"
	}
	switch uint32(s.Type) {
	case 0xef53:
		return "ext4"
	case 0x58465342:
		return "xfs"
	case 0x9123683e:
		return "btrfs"
	case 0x794c7630:
		return "overlayfs"
	case 0x01021994:
		return memoryFiles
	}
	return fmt.Sprintf("file system %#x", uint32(s.Type))
}
