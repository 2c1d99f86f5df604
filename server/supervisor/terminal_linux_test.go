package supervisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A pseudoTerminal is the side of the user.
type pseudoTerminal struct {
	*os.File
	screen strings.Builder
}

// onTerminal starts a command as the leader of a session with a terminal.
func onTerminal(t *testing.T, cmd *exec.Cmd) *pseudoTerminal {
	t.Helper()
	// Nonblocking, for deadlines.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("NOT TESTED on a terminal: /dev/ptmx: %v", err)
	}
	user := &pseudoTerminal{File: os.NewFile(uintptr(fd), "/dev/ptmx")}
	t.Cleanup(func() { _ = user.Close() })
	if err := user.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close() //nolint:errcheck // the command has it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = append(os.Environ(), roleVariable+"="+supervisorRole, managerVariable+"=127.0.0.1:1", timeoutVariable+"=1ms", "PS1=ready$ ", "TERM=dumb")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has usually ended
		_ = cmd.Wait()
	})
	return user
}

// keys types keys.
func (p *pseudoTerminal) keys(t *testing.T, keys string) {
	t.Helper()
	if _, err := p.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// want waits until the screen shows a text after what was waited for before.
func (p *pseudoTerminal) want(t *testing.T, text string) {
	t.Helper()
	data := make([]byte, 1000)
	for {
		shown := p.screen.String()
		if _, rest, found := strings.Cut(shown, text); found {
			p.screen.Reset()
			p.screen.WriteString(rest)
			return
		}
		n, err := p.Read(data)
		if err != nil {
			t.Fatalf("the screen shows %q, want %q: %v", shown, text, err)
		}
		p.screen.Write(data[:n])
	}
}

const (
	controlC = "\x03"
	controlD = "\x04"
	controlZ = "\x1a"
)

// Ctrl-C reaches the child once. Without a shell, Ctrl-Z does not stop it.
func TestTerminal(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "signals")
	user := onTerminal(t, cmd)
	user.want(t, "\n") // the process ID
	user.keys(t, controlC)
	user.want(t, "interrupt\r\n")
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil { // which is forwarded after an interrupt
		t.Fatal(err)
	}
	user.want(t, "user defined signal 1\r\n")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	user.want(t, "terminated\r\n")
	if left := user.screen.String(); strings.Contains(left, "interrupt") || cmd.Wait() != nil {
		t.Errorf("the child also printed %q, and ended with %v", left, cmd.ProcessState)
	}

	cmd = exec.CommandContext(t.Context(), os.Args[0], "block")
	user = onTerminal(t, cmd)
	user.want(t, "\n") // the hash
	user.want(t, "\n") // the process ID
	user.keys(t, controlZ)
	user.keys(t, controlD)
	user.want(t, "end of input")
}

// In a shell, Ctrl-Z stops supervisor and child, and fg continues both.
func TestJobControl(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("NOT TESTED with a shell: %v", err)
	}
	user := onTerminal(t, exec.CommandContext(t.Context(), shell, "--norc", "--noprofile", "--noediting", "-i"))
	user.want(t, "ready$ ")
	user.keys(t, os.Args[0]+" job\n")
	user.want(t, "started\r\n")
	for range 2 {
		user.keys(t, controlZ)
		user.want(t, "Stopped")
		user.want(t, "ready$ ")
		user.keys(t, "fg\n")
		user.want(t, "continued\r\n")
	}
	user.keys(t, controlC)
	user.want(t, "ready$ ")
	user.keys(t, "echo status $?\n")
	user.want(t, "\nstatus 130")
	user.keys(t, "exit\n")
}

// In the background, a supervisor leaves the terminal to the job in the foreground when its child ends.
func TestBackgroundJob(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("NOT TESTED with a shell: %v", err)
	}
	user := onTerminal(t, exec.CommandContext(t.Context(), shell, "--norc", "--noprofile", "--noediting", "-i"))
	user.want(t, "ready$ ")
	// The job in the foreground reads a line after the end of the supervisor.
	user.keys(t, os.Args[0]+` exit & sh -c 'while kill -0 $0; do :; done 2>/dev/null; echo en""ded; read x; echo got $x' $!`+"\n")
	user.want(t, "ended")
	user.keys(t, "line\n")
	user.want(t, "got line")
	user.keys(t, "exit\n")
}

// In a script, a supervisor in the background leaves the terminal to the script.
func TestScript(t *testing.T) {
	user := onTerminal(t, exec.CommandContext(t.Context(), "sh", "-c", `"$0" job & read x; echo got $x; kill $!; wait $!`, os.Args[0]))
	user.want(t, "started")
	user.keys(t, "line\n")
	user.want(t, "got line")
}
