//go:build unix

package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A terminal runs one command after the other.
type terminal struct {
	manager string // its address, for commands
	cmd     *exec.Cmd
	command string
	ended   chan struct{} // closed when the command has ended

	mu      sync.Mutex
	output  strings.Builder // of the command
	changed chan struct{}   // receives after output
}

func newTerminal(manager string) *terminal {
	return &terminal{manager: manager, changed: make(chan struct{}, 1)}
}

// start waits for the end of the command before, and starts one in a process group of its own.
func (m *terminal) start(t *testing.T, command string) {
	t.Helper()
	m.wait(t)
	m.mu.Lock()
	m.output.Reset()
	m.mu.Unlock()
	cmd, ended := exec.Command("sh", "-c", command), make(chan struct{})
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "LEASEHOLD_MANAGERS="+m.manager)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = m, m
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.cmd, m.command, m.ended = cmd, command, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its status is in cmd
	}()
}

// Write adds output.
func (m *terminal) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
	return m.output.Write(p)
}

func (m *terminal) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.output.String()
}

func (m *terminal) running() bool {
	if m.cmd == nil {
		return false
	}
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// wait waits until no command runs.
func (m *terminal) wait(t *testing.T) {
	t.Helper()
	if m.cmd == nil {
		return
	}
	select {
	case <-m.ended:
	case <-time.After(patience):
		t.Fatalf("still running:\n%s%s", m.command, m.text())
	}
}

// want waits until the output has a line for each line of the expectation, in any order. "..." matches any text.
func (m *terminal) want(t *testing.T, expectation string) {
	t.Helper()
	deadline := time.After(patience)
	for m.running() {
		if missingLine(m.text(), expectation) == "" {
			return
		}
		select {
		case <-m.changed:
		case <-m.ended:
		case <-deadline:
			t.Fatalf("still running, without the line %q:\n%s%s", missingLine(m.text(), expectation), m.command, m.text())
		}
	}
	if missing := missingLine(m.text(), expectation); missing != "" {
		t.Fatalf("no line %q in the output of\n%s%s", missing, m.command, m.text())
	}
}

// missingLine returns the first line of an expectation that is not in the output, "" if there is none.
func missingLine(output, expectation string) string {
	for line := range strings.Lines(expectation) {
		words := strings.Join(strings.Fields(line), " ")
		pattern := strings.ReplaceAll(regexp.QuoteMeta(words), `\.\.\.`, ".*")
		if !regexp.MustCompile("(?m)^" + pattern + "$").MatchString(squeezed(output)) {
			return words
		}
	}
	return ""
}

// squeezed replaces the white space between the words of each line by one space.
func squeezed(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// press sends the signal of a key to all processes of the command, and waits until they have ended.
func (m *terminal) press(t *testing.T, key syscall.Signal) {
	t.Helper()
	if !m.running() {
		t.Fatalf("%v: the command has ended already:\n%s%s", key, m.command, m.text())
	}
	if err := syscall.Kill(-m.cmd.Process.Pid, key); err != nil {
		t.Fatal(err)
	}
	m.wait(t)
}

// close ends what a failed test has left. A supervisor forwards SIGQUIT, which ends a Go program.
func (m *terminal) close() {
	if m.running() {
		_ = syscall.Kill(-m.cmd.Process.Pid, syscall.SIGQUIT) // it may have just ended
		<-m.ended
	}
}
