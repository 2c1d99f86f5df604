// Package console formats the output of commands: for streams that may be terminals, with colours,
// tables and numbers, or as JSON.
package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

// A Screen is a stream that may be a terminal. It removes the escape sequences that the terminal
// does not support: all without a terminal, and colours if NO_COLOR is set.
type Screen struct {
	io.Writer
	Terminal bool // supports redrawing
	Width    int  // in columns; UsualWidth without a terminal
}

// UsualWidth is the width without a terminal.
const UsualWidth = 80

// New returns a screen for a stream.
func New(w io.Writer) Screen {
	out := colorprofile.NewWriter(w, os.Environ())

	// The library expects a boolean value; no-color.org allows any value.
	if os.Getenv("NO_COLOR") != "" {
		out.Profile = min(out.Profile, colorprofile.ASCII)
	}
	s := Screen{Writer: out, Width: UsualWidth}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(file.Fd()) || os.Getenv("TERM") == "dumb" {
		return s
	}
	s.Terminal = true
	if width, _, err := term.GetSize(file.Fd()); err == nil && width > 0 {
		s.Width = width
	}
	return s
}

// Columns is the width of a terminal, or 0 without one, which means that lines are not truncated.
func (s Screen) Columns() int {
	if !s.Terminal {
		return 0
	}
	return s.Width
}

// Say writes optional output, and ignores errors.
func (s Screen) Say(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }

// Heading, Good and Bad style a text. The colours are those of the terminal's theme.
func Heading(s string) string { return lipgloss.NewStyle().Bold(true).Render(s) }

// Good styles expected results.
func Good(s string) string { return lipgloss.NewStyle().Foreground(lipgloss.Green).Render(s) }

// Bad styles problems.
func Bad(s string) string {
	return lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true).Render(s)
}

// JSON formats a document as indented JSON.
func JSON(document any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // keep arrows readable
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		panic(err) // documents contain only numbers, strings, lists and structs
	}
	return text.String()
}

// A Progress displays the progress of an operation: as a bar on a terminal, otherwise as occasional
// lines. It is for one goroutine at a time.
type Progress struct {
	out    Screen
	silent bool
	bar    progress.Model
	room   int // columns of the bar; it never grows, so that the bar is stable
	said   time.Duration
	before string // the last line
}

const (
	eraseLine = "\r\x1b[K" // moves to the start of the line and clears it
	lineEvery = 5 * time.Second
	minBar    = 8
	maxBar    = 40
)

// NewProgress returns a Progress on out. With JSON output it writes only to terminals.
func NewProgress(out Screen, json bool) *Progress {
	return &Progress{
		out: out, silent: json && !out.Terminal, room: maxBar, said: -lineEvery,
		bar: progress.New(progress.WithFillCharacters('█', '░'), progress.WithColors(lipgloss.Cyan), progress.WithoutPercentage()),
	}
}

// Report displays that a share of the work, from 0 to 1, is done at a time since the start. A
// negative share is unknown, and draws no bar.
func (p *Progress) Report(at time.Duration, share float64, text string) {
	switch {
	case p.silent:
	case p.out.Terminal:
		p.out.Say("%s%s", eraseLine, p.line(share, text))
	case text != p.before && (at-p.said >= lineEvery || at < p.said):
		p.said, p.before = at, text
		p.out.Say("%s\n", text)
	}
}

// Say displays a text before the first report.
func (p *Progress) Say(text string) {
	switch {
	case p.silent:
	case p.out.Terminal:
		p.out.Say("%s%s", eraseLine, lipgloss.NewStyle().MaxWidth(p.out.Width-1).Render(text))
	default:
		p.said = 0
		p.out.Say("%s\n", text)
	}
}

// Stop clears the bar.
func (p *Progress) Stop() {
	if p.out.Terminal && !p.silent {
		p.out.Say("%s", eraseLine)
	}
}

// line formats the bar, if there is room, and the text.
func (p *Progress) line(share float64, text string) string {
	width := p.out.Width - 1 // the last column would wrap
	p.room = min(p.room, width-lipgloss.Width(text)-2)
	if p.room < minBar || share < 0 {
		return lipgloss.NewStyle().MaxWidth(width).Render(text)
	}
	p.bar.SetWidth(p.room)
	return p.bar.ViewAs(share) + "  " + text
}
