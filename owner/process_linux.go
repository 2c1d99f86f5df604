package owner

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A process identifies a process uniquely: process IDs are reused,
// but not within the same boot, pid namespace and clock tick.
// It contains the time namespace because the start time is on that namespace's clock.
//
// It is not unique if a virtual machine is resumed twice from one snapshot of its
// memory: the copies have the same boot ID and cannot be distinguished.
// See Config.WaitForPredecessor.
type process struct {
	boot, pidSpace, timeSpace string
	pid                       int
	start                     uint64 // in ticks since the boot
}

// thisProcess returns the identity of this process. It is empty if the system does not
// provide it: then a successor waits until the leases expire.
func thisProcess() string {
	p, err := identify()
	if err != nil {
		return ""
	}
	return p.String()
}

func (p process) String() string {
	return fmt.Sprintf("%s %s %s %d %d", p.boot, p.pidSpace, p.timeSpace, p.pid, p.start)
}

func identify() (process, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, err
	}
	pidSpace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return process{}, err
	}
	timeSpace, err := os.Readlink("/proc/self/ns/time")
	if errors.Is(err, os.ErrNotExist) {
		timeSpace, err = "time:none", nil // kernels before 5.6
	}
	if err != nil {
		return process{}, err
	}
	if err := ownProc(); err != nil {
		return process{}, err
	}
	start, err := startOf(os.Getpid())
	if err != nil {
		return process{}, err
	}
	return process{strings.TrimSpace(string(boot)), pidSpace, timeSpace, os.Getpid(), start}, nil
}

// ownProc checks that /proc belongs to this process's pid namespace. In some containers it
// belongs to an outer one, where the same process IDs are other processes. Then
// NSpid contains several numbers.
func ownProc() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		if numbers, found := strings.CutPrefix(line, "NSpid:"); found && len(strings.Fields(numbers)) == 1 {
			return nil
		}
	}
	return errors.New("/proc belongs to another pid namespace")
}

// startOf returns the start time of a process: the 22nd field of its stat file. The
// second field is the command in parentheses, which may contain any character.
func startOf(pid int) (uint64, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	const afterCommand = 22 - 3
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= afterCommand {
		return 0, fmt.Errorf("stat of process %d has too few fields: %q", pid, stat)
	}
	return strconv.ParseUint(fields[afterCommand], 10, 64)
}

// processGone reports whether the process with an identity has ended,
// and whether it is visible from this process. If in doubt, it has not ended.
func processGone(identity string) (gone, visible bool) {
	var p process
	if _, err := fmt.Sscanf(identity, "%s %s %s %d %d", &p.boot, &p.pidSpace, &p.timeSpace, &p.pid, &p.start); err != nil {
		return false, false
	}
	self, err := identify()
	if err != nil || p.boot != self.boot || p.pidSpace != self.pidSpace || p.timeSpace != self.timeSpace || p.pid <= 0 {
		return false, false
	}
	// kill also finds processes that /proc hides.
	if err := syscall.Kill(p.pid, 0); errors.Is(err, syscall.ESRCH) {
		return true, true
	}
	start, err := startOf(p.pid)
	return err == nil && start != p.start, true
}
