package main

import (
	"fmt"
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"
)

// A waiting shows how far something is: with a bar that is redrawn on a terminal,
// else with a line now and then.
type waiting struct {
	out    screen
	silent bool
	bar    progress.Model
	said   time.Time
	before string // the line that was written last
}

func newWaiting(out screen, json bool) *waiting {
	return &waiting{
		out: out, silent: json && !out.terminal,
		bar: progress.New(progress.WithFillCharacters('█', '░'), progress.WithColors(lipgloss.Cyan), progress.WithoutPercentage()),
	}
}

// report says how far it is, and why nothing newer is known, if so.
func (w *waiting) report(share float64, text string, trouble error) {
	if trouble != nil {
		text = bad("no manager answers, trying again") + "; " + text
	}
	switch {
	case w.silent:
	case w.out.terminal:
		w.out.say("%s%s", eraseLine, w.line(share, text, w.out.width-1)) // the last column would wrap
	case text != w.before && time.Since(w.said) >= lineEvery:
		w.said, w.before = time.Now(), text
		w.out.say("%s\n", text)
	}
}

// line is a bar, as wide as there is room for, and what there is to say.
func (w *waiting) line(share float64, text string, width int) string {
	room := min(mostBar/2, width-lipgloss.Width(text)-2)
	if room < leastBar {
		return lipgloss.NewStyle().MaxWidth(width).Render(text)
	}
	w.bar.SetWidth(room)
	return fmt.Sprintf("%s  %s", w.bar.ViewAs(share), text)
}

// stop makes room for what comes next.
func (w *waiting) stop() {
	if w.out.terminal && !w.silent {
		w.out.say("%s", eraseLine)
	}
}
