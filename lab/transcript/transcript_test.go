package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTranscripts runs every script in testdata.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.play(script(d))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// script returns the commands of one block: the line that datadriven has split, and those below it.
func script(d *datadriven.TestData) []string {
	words := []string{d.Cmd}
	for _, arg := range d.CmdArgs {
		words = append(words, arg.String())
	}
	lines := []string{strings.Join(words, " ")}
	for line := range strings.Lines(d.Input) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// play runs the commands of a block and returns their output. In a block of several, each output stands below
// its command.
func (w *world) play(lines []string) (string, error) {
	quiet := lines[0] == "quietly"
	if quiet {
		lines = lines[1:]
	}
	var printed strings.Builder
	for _, line := range lines {
		w.out.Reset()
		if err := w.command(strings.Fields(line)); err != nil {
			return "", fmt.Errorf("%s: %w, after\n%s%s", line, err, printed.String(), w.out.String())
		}
		if w.violated && !w.unfiltered {
			return "", fmt.Errorf("%s:\n%s", line, w.out.String())
		}
		if w.out.Len() > 0 && len(lines) > 1 {
			fmt.Fprintf(&printed, "> %s\n", line)
		}
		printed.WriteString(w.out.String())
	}
	if quiet || printed.Len() == 0 {
		return "ok", nil
	}
	return printed.String(), nil
}
