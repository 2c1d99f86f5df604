package console

import (
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"
)

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
