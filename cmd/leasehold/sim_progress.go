package main

import (
	"fmt"
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold/internal/sim"
)

// A simProgress says how far a campaign is: with a bar that is redrawn if it
// writes to a terminal, else with a line now and then, as suits a log. It is
// for one goroutine at a time.
type simProgress struct {
	out     screen
	options *simOptions
	bar     progress.Model
	barRoom int // columns for the bar; only shrinks, so that it does not dance
	silent  bool
	said    time.Duration // into the campaign, when the last line was written
}

// lineEvery is how often a log gets a line.
const lineEvery = 5 * time.Second

// eraseLine goes to the beginning of the line and clears it.
const eraseLine = "\r\x1b[K"

// Widths of the bar. A bar that is narrower than the least says nothing.
const (
	leastBar = 8
	mostBar  = 40
)

func newProgress(out screen, o *simOptions) *simProgress {
	return &simProgress{
		out: out, options: o,
		bar: progress.New(
			progress.WithFillCharacters('█', '░'), progress.WithColors(lipgloss.Cyan), progress.WithoutPercentage()),
		barRoom: mostBar,
		silent:  o.json && !out.terminal,
	}
}

// start says what is about to happen.
func (p *simProgress) start() {
	o := p.options
	switch {
	case p.silent:
	case p.out.terminal:
		p.report(&sim.Summary{})
	default:
		p.out.say("simulating %s from seed %d on, %d at a time\n", counted(o.seeds, "world"), o.first, min(o.parallel, o.seeds))
	}
}

// report is called by the campaign a few times a second.
func (p *simProgress) report(s *sim.Summary) {
	switch {
	case p.silent:
	case p.out.terminal:
		p.out.say("%s%s", eraseLine, p.line(s, p.out.width-1)) // the last column would wrap
	case s.Elapsed-p.said >= lineEvery:
		p.said = s.Elapsed
		p.out.say("%s\n", p.numbers(s, "h simulated"))
	}
}

// stop makes room for the summary.
func (p *simProgress) stop() {
	if p.out.terminal && !p.silent {
		p.out.say("%s", eraseLine)
	}
}

// line is a bar, as wide as there is room for, and the numbers.
func (p *simProgress) line(s *sim.Summary, width int) string {
	numbers := p.numbers(s, "sim h") // so short that a bar fits into 80 columns
	p.barRoom = min(p.barRoom, width-lipgloss.Width(numbers)-2)
	if p.barRoom < leastBar {
		return lipgloss.NewStyle().MaxWidth(width).Render(numbers)
	}
	p.bar.SetWidth(p.barRoom)
	return p.bar.ViewAs(float64(s.Seeds)/float64(p.options.seeds)) + "  " + numbers
}

func (p *simProgress) numbers(s *sim.Summary, hours string) string {
	violations := counted(len(s.Failures), "violation")
	if len(s.Failures) > 0 {
		violations = bad(violations)
	}
	return fmt.Sprintf("%d/%d seeds, %.0f %s, %sx, %s, ETA %s",
		s.Seeds, p.options.seeds, s.Simulated.Hours(), hours, grouped(uint64(s.Speedup())), violations, p.eta(s))
}

// eta is how long the rest will take if it takes as long as what is done.
func (p *simProgress) eta(s *sim.Summary) string {
	if s.Seeds == 0 {
		return "?"
	}
	perSeed := s.Elapsed / time.Duration(s.Seeds)
	return (perSeed * time.Duration(p.options.seeds-s.Seeds)).Round(time.Second).String()
}
