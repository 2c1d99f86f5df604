package kit

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// A style is how progress is shown.
type style int

const (
	plain  style = iota // a line now and then
	bar                 // one line that changes, on a terminal
	lines               // for a program that reads it: see ParseProgress
	silent              // not at all
)

// A Progress says how far something has come. It is for one goroutine.
type Progress struct {
	out         io.Writer
	style       style
	now         func() time.Time
	began, said time.Time
	ended       bool
}

// plainPause is the least time between two lines where there is no terminal.
const plainPause = 5 * time.Second

// NewProgress shows progress on a file: as a bar if that is a terminal, and as a
// line now and then if not.
func NewProgress(out *os.File) *Progress {
	s := plain
	if info, err := out.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" {
		s = bar
	}
	return newProgress(out, s, time.Now)
}

func newProgress(out io.Writer, s style, now func() time.Time) *Progress {
	return &Progress{out: out, style: s, now: now, began: now()}
}

// Show says that a share of all, from 0 to 1, is done, and what comes now.
func (p *Progress) Show(share float64, text string) {
	share = min(1, max(0, share))
	now := p.now()
	switch p.style {
	case bar:
		// Without wrapping, the terminal cuts off what is too long for its line.
		p.printf("\r\x1b[?7l%s %3.0f %% %s  %s\x1b[K\x1b[?7h", drawBar(share), 100*share, p.left(now, share), text)
	case plain:
		if !p.said.IsZero() && now.Sub(p.said) < plainPause && share < 1 {
			return
		}
		p.printf("%5.0fs %3.0f %%  %s\n", now.Sub(p.began).Seconds(), 100*share, text)
	case lines:
		p.printf("%s%.4f %s\n", progressMark, share, text)
	case silent:
	}
	p.said = now
}

// Note says something that stays: a warning. It is for any style.
func (p *Progress) Note(text string) {
	if p.style == bar {
		p.printf("\r\x1b[K")
	}
	if p.style != silent {
		p.printf("%s\n", text)
	}
}

// End leaves the line, so that what follows begins on its own.
func (p *Progress) End() {
	if p.style == bar && !p.ended && !p.said.IsZero() {
		p.printf("\r\x1b[K")
	}
	p.ended = true
}

// printf writes. That nobody can see the progress is no reason to stop.
func (p *Progress) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// left guesses how much time is left; before a hundredth is done, nobody knows.
func (p *Progress) left(now time.Time, share float64) string {
	if share < 0.01 {
		return "     ?"
	}
	rest := time.Duration(float64(now.Sub(p.began)) * (1 - share) / share)
	return fmt.Sprintf("%6s", rest.Round(time.Second))
}

func drawBar(share float64) string {
	const width = 30
	full := int(share * width)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

const progressMark = "progress "

// ParseProgress understands a line that a question wrote with -progress=lines.
func ParseProgress(line string) (share float64, text string, ok bool) {
	rest, ok := strings.CutPrefix(line, progressMark)
	if !ok {
		return 0, "", false
	}
	number, text, _ := strings.Cut(rest, " ")
	share, err := strconv.ParseFloat(number, 64)
	return share, text, err == nil && share >= 0 && share <= 1
}
