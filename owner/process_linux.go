package owner

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A process names one process of all that ever were: pid numbers are reused,
// but not within the same boot, the same pid namespace and the same clock tick.
// The time namespace is in it because the start is counted on its clock.
//
// That holds unless a virtual machine is resumed twice from one snapshot of its
// memory: both copies have the same boot, and nothing in them tells which of the
// two they are. See Config.WaitForPredecessor.
type process struct {
	boot, pidSpace, timeSpace string
	pid                       int
	start                     uint64 // in ticks since the boot
}

// thisProcess identifies the process that calls it. It is empty if the system
// does not say: nothing will be proven about us then, and our leases are waited
// out.
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
		timeSpace, err = "time:none", nil // kernels before 5.6 have but one
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

// ownProc makes sure that /proc shows our own pid namespace. One of an outer
// namespace, as some containers have it, shows other processes under the
// numbers that we know: then a process has one number for each namespace.
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
	return errors.New("/proc is not that of this pid namespace")
}

// startOf reads when a process started: the 22nd field of its stat file, whose
// second is the command in brackets and may have anything in it.
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

// processGone reports whether the process with an identity no longer exists,
// and whether it makes sense to ask again: it does not for one that could not
// be seen from here. Whatever is uncertain is not gone.
func processGone(identity string) (gone, knowable bool) {
	var p process
	if _, err := fmt.Sscanf(identity, "%s %s %s %d %d", &p.boot, &p.pidSpace, &p.timeSpace, &p.pid, &p.start); err != nil {
		return false, false
	}
	self, err := identify()
	if err != nil || p.boot != self.boot || p.pidSpace != self.pidSpace || p.timeSpace != self.timeSpace || p.pid <= 0 {
		return false, false
	}
	// The kernel's word on whether the number is in use, which /proc may hide.
	if err := syscall.Kill(p.pid, 0); errors.Is(err, syscall.ESRCH) {
		return true, true
	}
	start, err := startOf(p.pid)
	return err == nil && start != p.start, true
}
