package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/version"
)

// A machine is where the contest took place.
type machine struct {
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	System    string  `json:"system"`
	Files     string  `json:"files"`      // the file system of the lock services' data
	Load      float64 `json:"loadBefore"` // the system's, over a minute
	Go        string  `json:"go"`
	Etcd      string  `json:"etcd"`
	ZooKeeper string  `json:"zooKeeper,omitempty"`
	Java      string  `json:"java,omitempty"`
}

func (m *machine) versions() string {
	text := m.Go + ", etcd " + m.Etcd
	if m.ZooKeeper != "" {
		text += ", ZooKeeper " + m.ZooKeeper + " on " + m.Java
	}
	return text
}

// thisMachine describes the computer that we run on, as far as Linux tells. What
// cannot be found out is unknown.
func thisMachine(ctx context.Context, dir string) machine {
	m := machine{
		CPU: "unknown", Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Files: fileSystem(dir), Go: runtime.Version(), Etcd: version.Version,
	}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		m.CPU = cpuModel(f)
		_ = f.Close()
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += ", Linux " + strings.TrimSpace(string(release))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &m.Load)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if text, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput(); err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		m.Java = strings.ReplaceAll(first, `"`, "")
	}
	return m
}

// cpuModel finds the processor's name in what Linux says of it.
func cpuModel(cpuinfo io.Reader) string {
	lines := bufio.NewScanner(cpuinfo)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
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
