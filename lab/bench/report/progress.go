package report

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

type style int

const (
	plain style = iota // a line every few seconds
	bar                // one line that changes, on a terminal
	lines              // for programs: see ParseProgress
)

// A Progress displays the progress of a run. It is not safe for concurrent use.
type Progress struct {
	out              io.Writer
	style            style
	now              func() time.Time
	began, lastShown time.Time
}

// plainPause is the minimum time between two lines without a terminal.
const plainPause = 5 * time.Second

// NewProgress displays progress on out: as a bar on a terminal, and otherwise as a line every
// few seconds.
func NewProgress(out io.Writer) *Progress {
	s := plain
	if f, ok := out.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			s = bar
		}
	}
	return newProgress(out, s, time.Now)
}

func newProgress(out io.Writer, s style, now func() time.Time) *Progress {
	return &Progress{out: out, style: s, now: now, began: now()}
}

// Show displays the completed share, from 0 to 1, and the current step.
func (p *Progress) Show(share float64, text string) {
	share = min(1, max(0, share))
	now := p.now()
	switch p.style {
	case bar:
		const width = 30
		full := int(share * width)
		// Without wrapping, the terminal truncates long lines.
		p.printf("\r\x1b[?7l[%s%s] %3.0f %% %s  %s\x1b[K\x1b[?7h",
			strings.Repeat("#", full), strings.Repeat(".", width-full), 100*share, p.left(now, share), text)
	case plain:
		if !p.lastShown.IsZero() && now.Sub(p.lastShown) < plainPause && share < 1 {
			return
		}
		p.printf("%5.0fs %3.0f %%  %s\n", now.Sub(p.began).Seconds(), 100*share, text)
	case lines:
		p.printf("%s%.4f %s\n", progressMark, share, text)
	}
	p.lastShown = now
}

// Note writes a permanent line.
func (p *Progress) Note(text string) {
	p.End()
	p.printf("%s\n", text)
}

// End clears the bar, so that other output starts on a new line.
func (p *Progress) End() {
	if p.style == bar && !p.lastShown.IsZero() {
		p.printf("\r\x1b[K")
	}
}

// printf writes, and ignores errors.
func (p *Progress) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// left estimates the remaining time; it is unknown below 1 %.
func (p *Progress) left(now time.Time, share float64) string {
	if share < 0.01 {
		return "     ?"
	}
	rest := time.Duration(float64(now.Sub(p.began)) * (1 - share) / share)
	return fmt.Sprintf("%6s", rest.Round(time.Second))
}

const progressMark = "progress "

// ParseProgress parses a progress line of a benchmark with -lines.
func ParseProgress(line string) (share float64, text string, ok bool) {
	rest, ok := strings.CutPrefix(line, progressMark)
	if !ok {
		return 0, "", false
	}
	number, text, _ := strings.Cut(rest, " ")
	share, err := strconv.ParseFloat(number, 64)
	return share, text, err == nil && share >= 0 && share <= 1
}
