package main

import (
	"fmt"
	"io"
	"os"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

// A screen is a stream that may be a terminal. What is written to it may be
// coloured: it takes out what its terminal cannot show, which is everything
// if it is none, and colours if NO_COLOR is set.
type screen struct {
	io.Writer
	terminal bool // it can be redrawn
	width    int  // in columns; a usual one if it is no terminal
}

const usualWidth = 80

func newScreen(w io.Writer) screen {
	out := colorprofile.NewWriter(w, os.Environ())
	// The library wants a truth value; no-color.org says any value will do.
	if os.Getenv("NO_COLOR") != "" {
		out.Profile = min(out.Profile, colorprofile.ASCII)
	}
	s := screen{Writer: out, width: usualWidth}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(file.Fd()) || os.Getenv("TERM") == "dumb" {
		return s
	}
	s.terminal = true
	if width, _, err := term.GetSize(file.Fd()); err == nil && width > 0 {
		s.width = width
	}
	return s
}

// columns is how many there are, or 0 if it is no terminal: what goes elsewhere is not for eyes
// alone, and its lines stay whole.
func (s screen) columns() int {
	if !s.terminal {
		return 0
	}
	return s.width
}

// say writes what is good to know but not asked for. If it cannot be written,
// there is nobody to tell.
func (s screen) say(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }

// The colours are those of the terminal's own theme, not ours.
func heading(s string) string { return lipgloss.NewStyle().Bold(true).Render(s) }
func good(s string) string    { return lipgloss.NewStyle().Foreground(lipgloss.Green).Render(s) }
func bad(s string) string     { return lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true).Render(s) }
