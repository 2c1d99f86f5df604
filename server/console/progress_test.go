package console

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

func TestProgressOnATerminalIsABar(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(Screen{Writer: &out, Terminal: true, Width: 33}, true)
	p.Report(0, 0.5, "half of it")
	p.Report(0, 0.5, "half")
	p.Report(0, 0.5, strings.Repeat("long ", 20))
	p.Stop()
	lines := strings.Split(out.String(), eraseLine)
	if len(lines) != 5 || lines[4] != "" {
		t.Fatalf("it writes %q", lines)
	}
	for i, want := range []string{"██████████░░░░░░░░░░  half of it", "██████████░░░░░░░░░░  half"} {
		if got := ansi.Strip(lines[i+1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := ansi.Strip(lines[3]); len(got) > 32 || !strings.HasPrefix(got, "long long") {
		t.Errorf("without room for a bar: %q", got)
	}
}

func TestProgressInALogIsALineNowAndThen(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(Screen{Writer: &out}, false)
	p.Say("beginning")
	p.Report(time.Second, 0.1, "too early")
	p.Report(lineEvery, 0.2, "a fifth")
	p.Report(2*lineEvery, 0.2, "a fifth") // nothing new
	p.Report(3*lineEvery, 0.3, "more")
	p.Report(time.Second, 0.1, "a second run")
	p.Stop()
	if got, want := out.String(), "beginning\na fifth\nmore\na second run\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out.Reset()
	p = NewProgress(Screen{Writer: &out}, true)
	p.Say("beginning")
	p.Report(lineEvery, 0.2, "a fifth")
	p.Stop()
	if out.Len() > 0 {
		t.Errorf("beside JSON it writes %q", out.String())
	}
}
