// Package console is how commands write: to streams that may be terminals, in colours,
// lists and numbers for people, or JSON for programs.
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

// A Screen is a stream that may be a terminal. What is written to it may be
// coloured: it takes out what its terminal cannot show, which is everything
// if it is none, and colours if NO_COLOR is set.
type Screen struct {
	io.Writer
	Terminal bool // it can be redrawn
	Width    int  // in columns; UsualWidth if it is no terminal
}

// UsualWidth is the width of what is no terminal.
const UsualWidth = 80

// New returns a stream as a screen.

func New(w io.Writer) Screen {
	out := colorprofile.NewWriter(w, os.Environ())

	// The library wants a truth value; no-color.org says any value will do.
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

// Columns is the width of a terminal, and 0 if it is none: lines that go elsewhere stay whole.
func (s Screen) Columns() int {
	if !s.Terminal {
		return 0
	}
	return s.Width
}

// Say writes what is good to know but not asked for. If it cannot be written,
// there is nobody to tell.
func (s Screen) Say(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }

// Heading, Good and Bad colour a text. The colours are those of the terminal's own theme.
func Heading(s string) string { return lipgloss.NewStyle().Bold(true).Render(s) }

// Good is for results that are wanted.
func Good(s string) string { return lipgloss.NewStyle().Foreground(lipgloss.Green).Render(s) }

// Bad is for results that are not.
func Bad(s string) string {
	return lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true).Render(s)
}

// JSON is a document as JSON, indented.
func JSON(document any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // arrows in texts are to be read by people
	e.SetIndent("", "  ")
	if err := e.Encode(document); err != nil {
		panic(err) // numbers, strings, and lists and structs of them
	}
	return text.String()
}

// A Progress shows how far something is: with a bar that is redrawn on a terminal, else with a
// line now and then, as suits a log. It is for one goroutine at a time.
type Progress struct {
	out    Screen
	silent bool
	bar    progress.Model
	room   int // columns for the bar; it only shrinks, so that the bar does not jump
	said   time.Duration
	before string // the line that was written last
}

const (
	eraseLine = "\r\x1b[K" // goes to the beginning of the line and clears it
	lineEvery = 5 * time.Second
	minBar    = 8
	maxBar    = 40
)

// NewProgress returns a Progress on out. If the result is printed as JSON, it writes to terminals alone.
func NewProgress(out Screen, json bool) *Progress {
	return &Progress{
		out: out, silent: json && !out.Terminal, room: maxBar, said: -lineEvery,
		bar: progress.New(progress.WithFillCharacters('█', '░'), progress.WithColors(lipgloss.Cyan), progress.WithoutPercentage()),
	}
}

// Report says that a share of the work, from 0 to 1, is done at a time since its begin. Below 0 the
// share is not known, and there is no bar.
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

// Say says what is done before anything can be reported.
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

// Stop makes room for what comes next.
func (p *Progress) Stop() {
	if p.out.Terminal && !p.silent {
		p.out.Say("%s", eraseLine)
	}
}

// line is a bar, if there is room for it, and the text.
func (p *Progress) line(share float64, text string) string {
	width := p.out.Width - 1 // the last column would wrap
	p.room = min(p.room, width-lipgloss.Width(text)-2)
	if p.room < minBar || share < 0 {
		return lipgloss.NewStyle().MaxWidth(width).Render(text)
	}
	p.bar.SetWidth(p.room)
	return p.bar.ViewAs(share) + "  " + text
}
