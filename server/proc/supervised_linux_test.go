package proc

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aSupervisor prints "supervisor" when its child has ended, as "leasehold run" reports it.
var aSupervisor = []string{"sh", "-c", `"$@"; echo supervisor; read -r _`, "sh"}

// TestSupervised: signals go to the child of the supervisor, which acts on its end. Close does not wait for that.
func TestSupervised(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	p := &Process{Name: "supervised", Ended: func(err error) { t.Errorf("Ended was called: %v", err) }, Launch: Launch{
		Program: program, Args: []string{"signaled", "stays"}, Log: filepath.Join(t.TempDir(), "log"), Supervisor: aSupervisor,
		Output: func(r io.Reader) error {
			text := make([]byte, 100)
			for {
				n, err := r.Read(text)
				if err != nil {
					return nil
				}
				lines <- strings.TrimSpace(string(text[:n]))
			}
		},
	}}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if got := <-lines; got != "ready" {
		t.Fatalf("got %q, want the child", got)
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	stdin, killed := p.Stdin(), make(chan struct{})
	go func() {
		p.Kill()
		close(killed)
	}()
	if got := <-lines; got != "supervisor" {
		t.Errorf("got %q, want the supervisor", got)
	}
	if _, err := io.WriteString(stdin, "\n"); err != nil { // it still runs, and ends then
		t.Error(err)
	}
	<-killed
	p.Close()
}

func TestCloseEndsSupervisor(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Name: "supervised", Launch: Launch{
		Program: program, Args: []string{"signaled", "stays"}, Log: filepath.Join(t.TempDir(), "log"), Supervisor: aSupervisor,
	}}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.Close() // it would not return
	if p.Alive() {
		t.Error("it still runs")
	}
}

func TestParent(t *testing.T) {
	for text, want := range map[string]int{"12 (a) b) S 34 12 0": 34, "": 0, "1 (a) S": 0} {
		if got := parentIn([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if _, err := childOf(1 << 30); err == nil {
		t.Error("a process that does not exist has a child")
	}
}
