package main

import (
	"fmt"
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold/internal/chaos"
)

// A chaosProgress says how far a run is: with a bar that is redrawn if it writes to a
// terminal, else with a line now and then. It is for one goroutine at a time.
type chaosProgress struct {
	out    screen
	bar    progress.Model
	room   int // columns for the bar; only shrinks, so that it does not dance
	silent bool
	said   time.Duration
}

func newChaosProgress(out screen, json bool) *chaosProgress {
	return &chaosProgress{
		out: out, silent: json && !out.terminal, room: mostBar,
		bar: progress.New(progress.WithFillCharacters('█', '░'), progress.WithColors(lipgloss.Cyan), progress.WithoutPercentage()),
	}
}

func (p *chaosProgress) report(s chaos.Snapshot) {
	switch {
	case p.silent:
	case p.out.terminal:
		p.out.say("%s%s", eraseLine, p.line(s, p.out.width-1))
	case s.Elapsed-p.said >= lineEvery || s.Elapsed < p.said:
		p.said = s.Elapsed
		p.out.say("%s\n", chaosNumbers(s))
	}
}

// tell says what is done before a run.
func (p *chaosProgress) tell(doing string) {
	switch {
	case p.silent:
	case p.out.terminal:
		p.out.say("%s%s", eraseLine, lipgloss.NewStyle().MaxWidth(p.out.width-1).Render(doing))
	default:
		p.out.say("%s\n", doing)
	}
}

func (p *chaosProgress) stop() {
	if p.out.terminal && !p.silent {
		p.out.say("%s", eraseLine)
	}
}

// line is a bar, if there is room for it, and the numbers.
func (p *chaosProgress) line(s chaos.Snapshot, width int) string {
	numbers := chaosNumbers(s)
	p.room = min(p.room, width-lipgloss.Width(numbers)-2)
	if p.room < leastBar {
		return lipgloss.NewStyle().MaxWidth(width).Render(numbers)
	}
	p.bar.SetWidth(p.room)
	return p.bar.ViewAs(share(s)) + "  " + numbers
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

// chaosNumbers is how a run is doing: which, for how long, and what was done.
func chaosNumbers(s chaos.Snapshot) string {
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
