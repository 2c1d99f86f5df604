package main

import (
	"context"
	"fmt"
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"
)

const (
	// lookEvery is how often whoever waits looks: what it asks for costs the
	// leader a moment each time.
	lookEvery = 500 * time.Millisecond
	// silence is for how long managers may not answer before nobody waits any
	// more: a new leader takes seconds.
	silence = time.Minute
)

// A sight is how far something is.
type sight struct {
	done  bool
	share float64 // of it that is done, 0 to 1
	text  string
}

// timeUp says that it took longer than somebody wanted to wait.
type timeUp struct{}

func (timeUp) Error() string { return "the time is up" }

// await looks again and again until it is done, and shows how far it is. It
// returns what it saw last; with timeUp if that took too long, and with
// statusInterrupted if the user did not want to wait any longer. Managers that do
// not answer for a while are waited for.
func (c *client) await(ctx context.Context, within time.Duration, look func(context.Context, admin) (sight, error)) (sight, error) {
	shows := newWaiting(c.errs, c.json)
	defer shows.stop()
	var up <-chan time.Time
	if within > 0 {
		timer := time.NewTimer(within)
		defer timer.Stop()
		up = timer.C
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last, heard := sight{}, time.Now()
	for {
		var now sight
		err := c.askWithin(ctx, func(ctx context.Context, to admin) (err error) {
			now, err = look(ctx, to)
			return err
		})
		switch {
		case err == nil:
			last, heard = now, time.Now()
		case ctx.Err() != nil:
			return last, statusInterrupted
		case !elsewhere(err) || time.Since(heard) > silence:
			return last, err
		}
		if last.done {
			return last, nil
		}
		shows.report(last, err)
		select {
		case <-ctx.Done():
			return last, statusInterrupted
		case <-up:
			return last, timeUp{}
		case <-tick.C:
		}
	}
}

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
func (w *waiting) report(s sight, trouble error) {
	text := s.text
	if trouble != nil {
		text = bad("no manager answers, trying again") + "; " + text
	}
	switch {
	case w.silent:
	case w.out.terminal:
		w.out.say("%s%s", eraseLine, w.line(s.share, text, w.out.width-1)) // the last column would wrap
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
