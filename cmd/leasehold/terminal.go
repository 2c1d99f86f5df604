package main

import (
	"fmt"
	"io"

	"github.com/leasehold-dev/leasehold/internal/console"
)

// A screen is a stream that may be a terminal. See [console.Screen].
type screen struct {
	io.Writer
	terminal bool // it can be redrawn
	width    int  // in columns; a usual one if it is no terminal
}

const (
	usualWidth = console.UsualWidth
	eraseLine  = console.EraseLine
	lineEvery  = console.LineEvery
	leastBar   = console.LeastBar
	mostBar    = console.MostBar
)

// An entry is a line of a list: a name and what belongs to it, or a name alone.
type entry struct{ name, value string }

func newScreen(w io.Writer) screen {
	s := console.New(w)
	return screen{s.Writer, s.Terminal, s.Width}
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

func heading(s string) string           { return console.Heading(s) }
func good(s string) string              { return console.Good(s) }
func bad(s string) string               { return console.Bad(s) }
func grouped(n uint64) string           { return console.Grouped(n) }
func counted(n int, noun string) string { return console.Counted(n, noun) }
func jsonText(document any) string      { return console.JSON(document) }
