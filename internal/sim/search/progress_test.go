package search

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold/internal/console"
	"github.com/leasehold-dev/leasehold/internal/sim/engine"
)

// plain is what is left of a text on a stream that is no terminal.
func plain(s string) string {
	var out bytes.Buffer
	console.New(&out).Say("%s", s)
	return out.String()
}

// at is a campaign so far.
func at(seeds int, elapsed time.Duration, failures int) *engine.Summary {
	return &engine.Summary{
		Seeds: seeds, Elapsed: elapsed, Simulated: time.Duration(seeds) * 140 * time.Second,
		Failures: make([]engine.Failure, failures),
	}
}

func TestProgressInALogIsALineNowAndThen(t *testing.T) {
	o := parsed(t, "--seeds=1000", "--parallel=2")
	var out bytes.Buffer
	p := newProgress(console.New(&out), o)
	p.start()
	p.report(at(100, time.Second, 0))
	p.report(at(400, 4*time.Second, 0))
	p.report(at(500, 5*time.Second, 0))
	p.report(at(510, 5100*time.Millisecond, 0))
	p.report(at(900, 10*time.Second, 2))
	p.stop()
	want := "simulating 1,000 worlds from seed 1 on, 2 at a time\n" +
		"500/1000 seeds, 19 h simulated, 14,000x, 0 violations, ETA 5s\n" +
		"900/1000 seeds, 35 h simulated, 12,600x, 2 violations, ETA 1s\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestProgressIsSilentInALogNextToJSON(t *testing.T) {
	o := parsed(t, "--seeds=1000", "--json")
	var out bytes.Buffer
	p := newProgress(console.New(&out), o)
	p.start()
	p.report(at(500, time.Minute, 1))
	p.stop()
	if got := out.String(); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestProgressOnATerminalIsABar(t *testing.T) {
	for _, json := range []string{"--json=false", "--json=true"} {
		o := parsed(t, "--seeds=1000", json)
		var out bytes.Buffer
		p := newProgress(console.Screen{Writer: &out, Terminal: true, Width: 80}, o)
		p.start()
		p.report(at(250, time.Second, 0))
		p.report(at(500, 2*time.Second, 1))
		p.stop()
		frames := strings.Split(out.String(), console.EraseLine)
		want := []string{
			"",
			"░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0/1000 seeds, 0 sim h, 0x, 0 violations, ETA ?",
			"██████░░░░░░░░░░░░░░░░  250/1000 seeds, 10 sim h, 35,000x, 0 violations, ETA 3s",
			"███████████░░░░░░░░░░░  500/1000 seeds, 19 sim h, 35,000x, 1 violation, ETA 2s",
			"", // cleared for the summary
		}
		if len(frames) != len(want) {
			t.Fatalf("%d frames, want %d: %q", len(frames), len(want), frames)
		}
		for i := range want {
			if got := plain(frames[i]); got != want[i] {
				t.Errorf("frame %d:\n got %q\nwant %q", i, got, want[i])
			}
		}
	}
}

func TestProgressNeverWraps(t *testing.T) {
	o := parsed(t, "--seeds=1000000")
	for width := 1; width < 200; width++ {
		p := newProgress(console.Screen{Terminal: true, Width: width}, o)
		for _, s := range []*engine.Summary{at(0, 0, 0), at(12, time.Second, 0), at(123456, 36*time.Hour, 99), at(1000000, 100*time.Hour, 0)} {
			if got := lipgloss.Width(p.line(s, width)); got > width {
				t.Fatalf("width %d: the line has %d columns", width, got)
			}
		}
	}
}
