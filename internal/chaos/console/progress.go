package console

import (
	"fmt"
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold/internal/chaos"
)

// display shows how far a run is: a bar that is redrawn on a terminal, else a line now and then.
// It is for one goroutine at a time.
type display struct {
	out    Screen
	bar    progress.Model
	room   int // columns for the bar; it only shrinks, so that the bar does not jump
	silent bool
	said   time.Duration
}

const (
	eraseLine = "\r\x1b[K" // goes to the beginning of the line and clears it
	lineEvery = 5 * time.Second
	leastBar  = 8
	mostBar   = 40
)

func newProgress(out Screen, json bool) *display {
	return &display{
		out: out, silent: json && !out.Terminal, room: mostBar,
		bar: progress.New(progress.WithFillCharacters('█', '░'), progress.WithColors(lipgloss.Cyan), progress.WithoutPercentage()),
	}
}

// report shows how a run is doing.
func (p *display) report(s chaos.Snapshot) {
	switch {
	case p.silent:
	case p.out.Terminal:
		p.out.say("%s%s", eraseLine, p.line(s, p.out.Width-1))
	case s.Elapsed-p.said >= lineEvery || s.Elapsed < p.said:
		p.said = s.Elapsed
		p.out.say("%s\n", numbers(s))
	}
}

// say shows what is done before a run.
func (p *display) say(doing string) {
	switch {
	case p.silent:
	case p.out.Terminal:
		p.out.say("%s%s", eraseLine, lipgloss.NewStyle().MaxWidth(p.out.Width-1).Render(doing))
	default:
		p.out.say("%s\n", doing)
	}
}

func (p *display) stop() {
	if p.out.Terminal && !p.silent {
		p.out.say("%s", eraseLine)
	}
}

// line is a bar, if there is room for it, and the numbers.
func (p *display) line(s chaos.Snapshot, width int) string {
	text := numbers(s)
	p.room = min(p.room, width-lipgloss.Width(text)-2)
	if p.room < leastBar {
		return lipgloss.NewStyle().MaxWidth(width).Render(text)
	}
	p.bar.SetWidth(p.room)
	return p.bar.ViewAs(share(s)) + "  " + text
}

// share is how much of a run is done, by time or by faults, whichever ends it sooner.
func share(s chaos.Snapshot) float64 {
	done := 0.0
	if s.Of > 0 {
		done = float64(s.Elapsed) / float64(s.Of)
	}
	if s.Enough > 0 {
		done = max(done, float64(s.Faults)/float64(s.Enough))
	}
	return min(1, done)
}

// numbers is how a run is doing: which, for how long, and what was done.
func numbers(s chaos.Snapshot) string {
	at, faults := s.Elapsed.Round(time.Second).String(), counted(s.Faults, "fault")
	if s.Of > s.Elapsed {
		at += fmt.Sprintf(" of ~%v", s.Of.Round(time.Second))
	}
	if s.Enough > 0 {
		faults = fmt.Sprintf("%d of %s", s.Faults, counted(s.Enough, "fault"))
	}
	text := fmt.Sprintf("%s: %s, %s, %s, %s", s.Store, at, counted(s.Storms, "storm"), faults, s.Doing)
	if s.Broken {
		text += ", " + bad("VIOLATION")
	}
	return text
}
