//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/examples/internal/document"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const (
	tutorial = "../../docs/tutorial.md"
	maxWords = 1400
	// patience bounds the wait for the output of a command. It includes compilation on a loaded machine.
	patience = 5 * time.Minute
)

// TestTutorialShowsTheProgram: the Go blocks are main.go, in parts, and main_test.go.
func TestTutorialShowsTheProgram(t *testing.T) {
	blocks := document.Blocks(t, tutorial, maxWords)
	document.WantParts(t, blocks, "main.go", "main_test.go")
	var parts []string
	for _, b := range blocks {
		if b.Language == "go" {
			parts = append(parts, b.Code)
		}
	}
	if len(parts) != 4 {
		t.Fatalf("%d Go blocks, want 3 parts of main.go and main_test.go", len(parts))
	}
	for name, want := range map[string]string{"main.go": strings.Join(parts[:3], "\n"), "main_test.go": parts[3]} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s is not what the tutorial shows (%v)", name, err)
		}
	}
}

// TestTutorialCommands runs the commands of the tutorial in order, in real processes, and presses the keys that its text
// names. Only addresses and the data directory differ.
func TestTutorialCommands(t *testing.T) {
	for _, program := range []string{"go", "curl", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED: the commands of %s need %s", tutorial, program)
		}
	}
	r := newReader(t)
	for _, b := range document.Blocks(t, tutorial, maxWords) {
		r.obey(b.Text)
		switch b.Language {
		case "sh":
			r.commands++
			r.current.start(t, r.replacer.Replace(b.Code))
		case "text":
			r.current.want(t, r.replacer.Replace(b.Code))
		}
	}
	for _, m := range r.terminals {
		m.wait(t)
	}
	if r.commands != 15 || r.keys != 6 {
		t.Errorf("%d blocks of commands and %d keys, want 15 and 6: this test does not understand the text", r.commands, r.keys)
	}
}

// A reader follows the tutorial.
type reader struct {
	t         *testing.T
	terminals []*terminal
	servers   []string  // addresses, of terminals 2 and 3
	current   *terminal // that the text has named last
	replacer  *strings.Replacer
	commands  int
	keys      int
}

func newReader(t *testing.T) *reader {
	t.Helper()
	addrs, err := proc.FreePorts(5)
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, servers: addrs[3:], replacer: strings.NewReplacer(
		"leasehold dev ", fmt.Sprintf("leasehold dev --listen %s --http %s --gateway %s ", addrs[0], addrs[1], addrs[2]),
		"/tmp/counters", t.TempDir()+"/counters",
		"127.0.0.1:7400", addrs[0], "127.0.0.1:7401", addrs[1], "127.0.0.1:8080", addrs[2],
		"127.0.0.1:8001", addrs[3], "127.0.0.1:8002", addrs[4], "127.0.0.1:800...", "127.0.0.1:...",
	)}
	for range 4 {
		m := newTerminal(addrs[0])
		r.terminals = append(r.terminals, m)
		t.Cleanup(m.close)
	}
	return r
}

// instruction is a part of the text that a reader acts upon: a terminal, and perhaps a key to press in it.
var instruction = regexp.MustCompile(`(?:Ctrl-(.) in )?(?:the terminal of (that|the remaining) owner|[Tt]erminal (\d))`)

// obey acts upon the instructions of a text, in order.
func (r *reader) obey(text string) {
	r.t.Helper()
	for _, m := range instruction.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
		key, which, number := m[1], m[2], m[3]
		switch which {
		case "that":
			r.current = r.owner()
		case "the remaining":
			r.current = r.remaining()
		default:
			r.current = r.terminals[number[0]-'1']
		}
		switch key {
		case "C":
			r.keys++
			r.current.press(r.t, syscall.SIGINT)
			// The last server has no other to move its state to.
			if lost := strings.Contains(r.current.text(), "state is lost"); lost != (which == "the remaining") {
				r.t.Errorf("state lost: %t\n%s%s", lost, r.current.command, r.current.text())
			}
		case `\`:
			r.keys++
			r.current.press(r.t, syscall.SIGQUIT)
		}
	}
}

// owner returns the terminal of the server whose address was printed last.
func (r *reader) owner() *terminal {
	r.t.Helper()
	r.current.wait(r.t)
	for i, m := range r.terminals[1:3] {
		if strings.Contains(r.current.text(), r.servers[i]) {
			return m
		}
	}
	r.t.Fatalf("no server of this address:\n%s", r.current.text())
	return nil
}

// remaining returns the terminal of a server that runs.
func (r *reader) remaining() *terminal {
	r.t.Helper()
	for _, m := range r.terminals[1:3] {
		if m.running() {
			return m
		}
	}
	r.t.Fatal("no server runs")
	return nil
}
