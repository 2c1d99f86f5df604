package supervisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// However a process ends, its sessions are reported once it has, and the supervisor ends in the same way.
func TestEnds(t *testing.T) {
	for role, want := range map[string]string{
		"exit": "exit status 3", "panic": "exit status 2", "killed": "signal: killed", "terminate": "signal: terminated",
		"quit": "signal: quit", "fault": "signal: segmentation fault",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			manager := startManager(t)
			lines, ended := command(t, manager.addr, role).start(t).wait(t)
			got := manager.received(t)
			if ended != want || len(lines) != 2 || len(got) != 2 || got[0] != "presence "+lines[0] || got[1] != "sessions "+lines[1] {
				t.Errorf("%s, want %s; registered %q, reported %q", ended, want, lines, got)
			}
		})
	}
}

// A session that has left is not reported.
func TestLeft(t *testing.T) {
	manager := startManager(t)
	if _, ended := command(t, manager.addr, "leave").start(t).wait(t); ended != "exit status 0" || len(manager.notices) != 0 {
		t.Errorf("%s, %d notices", ended, len(manager.notices))
	}
}

// The child is waited for, not its children: they have none of its memory.
func TestDaemon(t *testing.T) {
	manager := startManager(t)
	r := command(t, manager.addr, "daemon").start(t)
	hash := r.line(t)
	<-r.noticed(manager)
	if _, err := fmt.Fprintln(r.stdin, "lives"); err != nil {
		t.Fatal(err)
	}
	if line := r.line(t); hash == "" || line != "daemon lives" {
		t.Errorf("the daemon printed %q", line)
	}
}

// noticed returns a channel that receives the next notice.
func (r *run) noticed(m *fakeManager) <-chan struct{} {
	received := make(chan struct{})
	go func() {
		<-m.notices
		close(received)
	}()
	return received
}

// Nothing is reported while the child runs, paused or not.
func TestNoNoticeWhileTheChildLives(t *testing.T) {
	manager := startManager(t)
	r := command(t, manager.addr, "block").start(t)
	_, pid := r.line(t), r.pid(t)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitForState(t, pid, "T")
	if len(manager.notices) != 0 {
		t.Error("the end of a paused process was reported")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, ended := r.wait(t); ended != "signal: killed" || len(manager.notices) != 1 {
		t.Errorf("%s, %d notices", ended, len(manager.notices))
	}
}

// pid reads a process ID from the child.
func (r *run) pid(t *testing.T) int {
	t.Helper()
	pid, err := strconv.Atoi(r.line(t))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitForState waits until a process is in a state of /proc/PID/stat.
func waitForState(t *testing.T, pid int, state string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, after, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(after, state) {
			return
		}
	}
	t.Fatalf("process %d is not in state %s", pid, state)
}

// The child continues after the end of its supervisor.
func TestSupervisorKilled(t *testing.T) {
	manager := startManager(t)
	r := command(t, manager.addr, "block").start(t)
	_, pid := r.line(t), r.pid(t)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.cmd.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the child: %v", err)
	}
	_ = r.stdin.Close() // the child reads the end
	if line := r.line(t); line != "end of input" || len(manager.notices) != 0 {
		t.Errorf("the child printed %q, %d notices", line, len(manager.notices))
	}
}

// Without managers the exit is delayed by the timeout, and a signal ends that.
func TestManagersDown(t *testing.T) {
	const dead = "127.0.0.1:1"
	r := command(t, dead, "killed")
	r.cmd.Env = append(r.cmd.Env, timeoutVariable+"=300ms")
	begin := time.Now()
	_, ended := r.start(t).wait(t)
	if took := time.Since(begin); ended != "signal: killed" || took < 300*time.Millisecond || took > 10*time.Second || !strings.Contains(r.log.String(), "death notice not acknowledged") {
		t.Errorf("%s after %v: %s", ended, took, r.log.String())
	}
	r = command(t, dead, "killed").start(t) // with a timeout of an hour
	for range 2 {
		r.line(t)
	}
	for r.cmd.Process.Signal(syscall.Signal(0)) == nil && !childless(r.cmd.Process.Pid) {
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, ended := r.wait(t); ended != "signal: killed" {
		t.Errorf("after a signal: %s", ended)
	}
}

// childless reports whether a process has no child.
func childless(pid int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if len(children) > 0 {
			return false
		}
	}
	return err == nil
}

// Each signal that was not ignored at the start reaches the child once.
func TestSignals(t *testing.T) {
	r := command(t, "127.0.0.1:1", "signals").start(t)
	r.pid(t)
	for _, s := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP, 37, syscall.SIGTERM,
	} {
		if signal.Ignored(s) {
			continue // the tests run under nohup, for example
		}
		if err := r.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if line := r.line(t); line != s.String() {
			t.Errorf("signal %v: the child received %s", s, line)
		}
	}
	if left, ended := r.wait(t); len(left) != 0 || ended != "exit status 0" {
		t.Errorf("%s, and the child received %q", ended, left)
	}
}

// As the first process of a PID namespace, the supervisor reaps orphans, and returns the status of a shell.
func TestFirstProcess(t *testing.T) {
	prefix := []string{"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}
	if out, err := exec.CommandContext(t.Context(), prefix[0], append(prefix[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED as the first process: no permission for a PID namespace: %v: %s", err, out)
	}
	manager := startManager(t)
	lines, ended := command(t, manager.addr, "killed", prefix...).start(t).wait(t)
	if got := manager.received(t); ended != "exit status 137" || len(got) != 2 || got[0] != "presence "+lines[0] {
		t.Errorf("%s, want 137; reported %q", ended, got)
	}
	r := command(t, manager.addr, "orphan", prefix...)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = out.Close()  // the orphan reads the end at once
	defer in.Close() //nolint:errcheck // it was only read
	r.cmd.ExtraFiles = []*os.File{in}
	if lines, ended := r.start(t).wait(t); ended != "exit status 0" || len(lines) != 1 || lines[0] != "reaped" {
		t.Errorf("%s: %q", ended, lines)
	}
}

// The child inherits open files under their numbers.
func TestInheritedFiles(t *testing.T) {
	r := command(t, "127.0.0.1:1", "files")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close() //nolint:errcheck // it was only read
	if _, err := out.WriteString("content\n"); err != nil {
		t.Fatal(err)
	}
	_ = out.Close() // the pipe has the line
	r.cmd.ExtraFiles = []*os.File{in}
	r.cmd.Env = append(r.cmd.Env, timeoutVariable+"=1ms") // no manager
	if line := r.start(t).line(t); line != "content" {
		t.Errorf("descriptor 3 has %q", line)
	}
	if lines, ended := r.wait(t); len(lines) != 1 || ended != "exit status 0" {
		t.Errorf("%s: %q", ended, lines)
	}
}
