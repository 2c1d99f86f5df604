package supervisor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// groupVariable is the cgroup with a memory limit that a child joins.
const groupVariable = "SUPERVISOR_TEST_CGROUP"

func memoryRoles() map[string]func() error {
	return map[string]func() error{
		"out of address space": crash(func() {
			const limit = 3 << 30 // the runtime itself needs less
			_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit})
			fill(limit)
		}),
		"out of memory": crash(func() {
			if err := writeExisting(os.Getenv(groupVariable), os.Getpid()); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fill(2 * memoryLimit)
		}),
	}
}

// memoryLimit is the limit of the cgroup.
const memoryLimit = 64 << 20

// fill allocates and writes a block of memory.
func fill(size int) {
	block := make([]byte, size)
	for i := 0; i < size; i += os.Getpagesize() {
		block[i] = 1
	}
}

// A Go process that can allocate no more memory ends itself.
func TestOutOfAddressSpace(t *testing.T) {
	manager := startManager(t)
	_, ended := command(t, manager.addr, "out of address space").start(t).wait(t)
	if ended != "exit status 2" || len(manager.received(t)) != 2 {
		t.Errorf("%s, and not two notices", ended)
	}
}

// The kernel kills a process that exceeds the memory limit of its cgroup. The supervisor is outside.
func TestOutOfMemory(t *testing.T) {
	group := newMemoryGroup(t)
	manager := startManager(t)
	r := command(t, manager.addr, "out of memory")
	r.cmd.Env = append(r.cmd.Env, groupVariable+"="+filepath.Join(group.dir, "cgroup.procs"))
	lines, ended := r.start(t).wait(t)
	if got := manager.received(t); ended != "signal: killed" || len(lines) != 2 || len(got) != 2 {
		t.Errorf("%s: %q, %d notices", ended, lines, len(got))
	}
	if events := group.events(t); !strings.Contains(events, "oom_kill 1\n") {
		t.Errorf("not killed for its memory: %q", events)
	}
}

// A memoryGroup is a cgroup with a memory limit.
type memoryGroup struct {
	dir    string
	counts string // the file with the number of kills
}

// newMemoryGroup creates a cgroup of version 2 or 1 until the test ends.
func newMemoryGroup(t *testing.T) memoryGroup {
	t.Helper()
	name := fmt.Sprint("leasehold-test-", os.Getpid())
	var reasons []string
	for _, kind := range []struct{ root, limit, counts string }{
		{"/sys/fs/cgroup", "memory.max", "memory.events"},
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"},
	} {
		group := memoryGroup{filepath.Join(kind.root, name), filepath.Join(kind.root, name, kind.counts)}
		err := os.Mkdir(group.dir, 0o700)
		if err == nil {
			t.Cleanup(func() { _ = os.Remove(group.dir) }) // its process has ended
			err = writeExisting(filepath.Join(group.dir, kind.limit), memoryLimit)
		}
		if err == nil {
			_ = writeExisting(filepath.Join(group.dir, "memory.swap.max"), 0) // there may be no swap
			return group
		}
		reasons = append(reasons, err.Error())
	}
	t.Skipf("NOT TESTED with an out-of-memory kill: no permission for a cgroup with a memory limit: %s", strings.Join(reasons, "; "))
	return memoryGroup{}
}

// writeExisting writes a number to a file of the kernel. Elsewhere there is no such file.
func writeExisting(file string, number int) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.Itoa(number))
	return errors.Join(err, f.Close())
}

func (g memoryGroup) events(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(g.counts)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
