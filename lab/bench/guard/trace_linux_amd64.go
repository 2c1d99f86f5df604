package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

func thisThread() int { return syscall.Gettid() }

func traceMe() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PTRACE, syscall.PTRACE_TRACEME, 0, 0); errno != 0 {
		return fmt.Errorf("tracing by the parent is not permitted: %w", errno)
	}
	return nil
}

// pin pins this thread and its children to one core, and returns a function that undoes it.
// Tracer and child then switch without waking another core, and a child with one core runs one
// goroutine at a time.
func pin() (release func(), err error) {
	var before, one [16]uint64 // a bit for each core
	if err := affinity(syscall.SYS_SCHED_GETAFFINITY, &before); err != nil {
		return nil, fmt.Errorf("%w: getting the CPU affinity: %w", errNoTracing, err)
	}
	for i, bits := range before {
		if bits != 0 {
			one[i] = bits & -bits
			break
		}
	}
	if err := affinity(syscall.SYS_SCHED_SETAFFINITY, &one); err != nil {
		return nil, fmt.Errorf("%w: setting the CPU affinity: %w", errNoTracing, err)
	}
	return func() { _ = affinity(syscall.SYS_SCHED_SETAFFINITY, &before) }, nil // restores the previous one
}

func affinity(call uintptr, cores *[16]uint64) error {
	if _, _, errno := syscall.RawSyscall(call, 0, unsafe.Sizeof(*cores), uintptr(unsafe.Pointer(cores))); errno != 0 { //nolint:gosec // the kernel wants an address
		return errno
	}
	return nil
}

// trace counts the instructions between the breakpoints of a thread, and returns the minimum.
// Then it kills the process. It returns an error if the process is killed before.
func trace(process, thread int) (least int, err error) {
	defer func() {
		_ = syscall.Kill(process, syscall.SIGKILL) // an error means that it has ended
		reap()
	}()
	if err := waitForBreakpoint(thread); err != nil {
		return 0, err
	}
	if err := stopOtherThreads(process, thread); err != nil {
		return 0, err
	}
	if err := unpreempt(thread); err != nil {
		return 0, err
	}
	var at syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(thread, &at); err != nil {
		return 0, fmt.Errorf("reading the registers: %w", err)
	}
	var clocks frozenClocks
	for range repetitions {
		n, err := stepTo(thread, at.Rip, &clocks)
		if err != nil {
			return 0, err
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return least, nil
}

func stepTo(thread int, mark uint64, clocks *frozenClocks) (n int, err error) {
	var at syscall.PtraceRegs
	for at.Rip = mark; n == 0 || at.Rip != mark; n++ {
		if n > mostInstructions {
			return 0, fmt.Errorf("more than %d instructions", n)
		}
		if err := syscall.PtraceSingleStep(thread); err != nil {
			return 0, fmt.Errorf("single step: %w", err)
		}
		if err := waitFor(thread); err != nil {
			return 0, fmt.Errorf("after %d instructions, at %#x: %w", n, at.Rip, err)
		}
		if err := syscall.PtraceGetRegs(thread, &at); err != nil {
			return 0, fmt.Errorf("reading the registers: %w", err)
		}
		if at.Rip >= beyond {
			if err := clocks.answer(thread, &at); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

const (
	beyond           = 1 << 40 // above the program's code: the vDSO
	mostInstructions = 1 << 20 // per execution
)

// frozenClocks are the constant values of the child's clocks. Single-stepping is so slow that
// with real clocks a lease would expire between two readings, and the sleep detector would
// report a suspend.
type frozenClocks map[uint64]syscall.Timespec

// answer emulates clock_gettime, the only vDSO function that the program calls, and returns
// from it.
func (c *frozenClocks) answer(thread int, at *syscall.PtraceRegs) error {
	if *c == nil {
		*c = make(frozenClocks)
		for clock := range uint64(8) {
			var now syscall.Timespec
			_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&now)), 0) //nolint:gosec // the kernel wants an address
			if errno == 0 {
				(*c)[clock] = now
			}
		}
	}
	now, ok := (*c)[at.Rdi]
	if !ok {
		return fmt.Errorf("unsupported clock %d", at.Rdi)
	}
	var words [16]byte
	binary.LittleEndian.PutUint64(words[:], uint64(now.Sec))
	binary.LittleEndian.PutUint64(words[8:], uint64(now.Nsec))
	if _, err := syscall.PtracePokeData(thread, uintptr(at.Rsi), words[:]); err != nil {
		return fmt.Errorf("writing the time: %w", err)
	}
	if _, err := syscall.PtracePeekData(thread, uintptr(at.Rsp), words[:8]); err != nil {
		return fmt.Errorf("reading the return address: %w", err)
	}
	at.Rip, at.Rsp, at.Rax = binary.LittleEndian.Uint64(words[:]), at.Rsp+8, 0
	if err := syscall.PtraceSetRegs(thread, at); err != nil {
		return fmt.Errorf("returning from the clock: %w", err)
	}
	return nil
}

// waitForBreakpoint waits until a thread is at its first breakpoint. It suppresses signals: the
// runtime uses them for preemption.
func waitForBreakpoint(thread int) error {
	for {
		signal, err := waitForStop(thread)
		if err != nil || signal == syscall.SIGTRAP {
			return err
		}
		if err := syscall.PtraceCont(thread, 0); err != nil {
			return fmt.Errorf("continuing the child: %w", err)
		}
	}
}

func waitFor(thread int) error {
	_, err := waitForStop(thread)
	return err
}

// waitForStop waits until a thread has stopped, and returns the signal. It waits for all threads
// of the child: if the child is killed, the end of its first thread is only reported after the
// others were waited for.
func waitForStop(thread int) (syscall.Signal, error) {
	for {
		who, status, err := waitForAny()
		switch {
		case errors.Is(err, syscall.ECHILD):
			return 0, fmt.Errorf("%w: the child is not traced", errNoTracing)
		case err != nil:
			return 0, fmt.Errorf("waiting for the child: %w", err)
		case who != thread:
		case status.Stopped():
			return status.StopSignal(), nil
		default:
			return 0, fmt.Errorf("the child has ended: %v", status)
		}
	}
}

// waitForAny waits for a state change of any child of this thread, but of no other thread's.
func waitForAny() (thread int, status syscall.WaitStatus, err error) {
	for {
		thread, err = syscall.Wait4(-1, &status, syscall.WALL|syscall.WNOTHREAD, nil)
		if !errors.Is(err, syscall.EINTR) {
			return thread, status, err
		}
	}
}

func stopOtherThreads(process, thread int) error {
	frozen := map[int]bool{thread: true}
	for found := true; found; { // until there are no new threads
		found = false
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", process))
		if err != nil {
			return fmt.Errorf("listing the child's threads: %w", err)
		}
		for _, task := range tasks {
			other, err := strconv.Atoi(task.Name())
			if err != nil || frozen[other] {
				continue
			}
			if err := syscall.PtraceAttach(other); err != nil {
				return fmt.Errorf("%w: stopping a thread of the child: %w", errNoTracing, err)
			}
			frozen[other] = true
			if err := waitFor(other); err != nil {
				return err
			}
			found = true
		}
	}
	return nil
}

// reap waits for all threads of a killed process.
func reap() {
	for {
		if _, _, err := waitForAny(); err != nil {
			return
		}
	}
}

// unpreempt cancels a preemption request of the goroutine. The scheduler requests preemption
// after ten milliseconds, before all its threads are stopped; with them stopped, the goroutine
// would never be resumed.
//
// A request sets stackguard0, the third word of the g, to a value above any stack. The first two
// words are the bounds of the stack, and R14 points to the g. See runtime2.go and stack.go of
// the runtime.
func unpreempt(thread int) error {
	const (
		request = 0xfffffffffffffade // stackPreempt
		guard   = 928                // stackGuard
	)
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(thread, &regs); err != nil {
		return fmt.Errorf("reading the registers: %w", err)
	}
	var words [24]byte
	if _, err := syscall.PtracePeekData(thread, uintptr(regs.R14), words[:]); err != nil {
		return fmt.Errorf("reading the goroutine's descriptor: %w", err)
	}
	low, high := binary.LittleEndian.Uint64(words[:]), binary.LittleEndian.Uint64(words[8:])
	if regs.Rsp < low || regs.Rsp >= high {
		return fmt.Errorf("%w: the stack pointer is outside of the goroutine's stack: unsupported Go release", errNoTracing)
	}
	if binary.LittleEndian.Uint64(words[16:]) != request {
		return nil
	}
	binary.LittleEndian.PutUint64(words[16:], low+guard)
	if _, err := syscall.PtracePokeData(thread, uintptr(regs.R14)+16, words[16:]); err != nil {
		return fmt.Errorf("writing the goroutine's descriptor: %w", err)
	}
	return nil
}
