package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// maxResident is the memory that a supervisor may add to a server.
const maxResident = 10 << 10 // KiB

// TestSupervisorMemory builds the command, because a test program is larger.
func TestSupervisorMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it links the command")
	}
	program := t.TempDir() + "/leasehold"
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, "run", "--", "cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(stdin, "echo"); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 10)); err != nil { // the child runs
		t.Fatal(err)
	}
	resident := residentOf(t, cmd.Process.Pid)
	for deadline := time.Now().Add(time.Minute); resident >= maxResident && time.Now().Before(deadline); {
		resident = residentOf(t, cmd.Process.Pid)
	}
	t.Logf("%d KiB resident", resident)
	if resident >= maxResident {
		t.Errorf("the supervisor has %d KiB resident, want less than %d", resident, maxResident)
	}
	_ = stdin.Close() // which ends cat
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// residentOf returns the resident memory of a process in KiB.
func residentOf(t *testing.T, pid int) (kib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
