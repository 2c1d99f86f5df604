package search

import (
	"fmt"
	"time"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"

	"github.com/leasehold-dev/leasehold/internal/console"
	"github.com/leasehold-dev/leasehold/internal/sim/engine"
)

// A campaignProgress reports how far a campaign is: with a bar that is redrawn if it
// writes to a terminal, else with a line now and then, as suits a log. It is
// for one goroutine at a time.
type campaignProgress struct {
	out     console.Screen
	job     *Job
	bar     progress.Model
	barRoom int // columns for the bar; only shrinks, so that it does not dance
	silent  bool
	said    time.Duration // into the campaign, when the last line was written
}

func newProgress(out console.Screen, s *Job) *campaignProgress {
	return &campaignProgress{
		out: out, job: s,
		bar: progress.New(
			progress.WithFillCharacters('█', '░'), progress.WithColors(lipgloss.Cyan), progress.WithoutPercentage()),
		barRoom: console.MostBar,
		silent:  s.JSON && !out.Terminal,
	}
}

// start says what is about to happen.
func (p *campaignProgress) start() {
	o := p.job
	switch {
	case p.silent:
	case p.out.Terminal:
		p.report(&engine.Summary{})
	default:
		p.out.Say("simulating %s from seed %d on, %d at a time\n", console.Counted(o.Seeds, "world"), o.First, min(o.Parallel, o.Seeds))
	}
}

// report is called by the campaign a few times a second.
func (p *campaignProgress) report(s *engine.Summary) {
	switch {
	case p.silent:
	case p.out.Terminal:
		p.out.Say("%s%s", console.EraseLine, p.line(s, p.out.Width-1)) // the last column would wrap
	case s.Elapsed-p.said >= console.LineEvery:
		p.said = s.Elapsed
		p.out.Say("%s\n", p.numbers(s, "h simulated"))
	}
}

// stop makes room for the summary.
func (p *campaignProgress) stop() {
	if p.out.Terminal && !p.silent {
		p.out.Say("%s", console.EraseLine)
	}
}

// line is a bar, as wide as there is room for, and the numbers.
func (p *campaignProgress) line(s *engine.Summary, width int) string {
	numbers := p.numbers(s, "sim h") // so short that a bar fits into 80 columns
	p.barRoom = min(p.barRoom, width-lipgloss.Width(numbers)-2)
	if p.barRoom < console.LeastBar {
		return lipgloss.NewStyle().MaxWidth(width).Render(numbers)
	}
	p.bar.SetWidth(p.barRoom)
	return p.bar.ViewAs(float64(s.Seeds)/float64(p.job.Seeds)) + "  " + numbers
}

func (p *campaignProgress) numbers(s *engine.Summary, hours string) string {
	violations := console.Counted(len(s.Failures), "violation")
	if len(s.Failures) > 0 {
		violations = console.Bad(violations)
	}
	return fmt.Sprintf("%d/%d seeds, %.0f %s, %sx, %s, ETA %s",
		s.Seeds, p.job.Seeds, s.Simulated.Hours(), hours, console.Grouped(uint64(s.Speedup())), violations, p.eta(s))
}

// eta is how long the rest will take if it takes as long as what is done.
func (p *campaignProgress) eta(s *engine.Summary) string {
	if s.Seeds == 0 {
		return "?"
	}
	perSeed := s.Elapsed / time.Duration(s.Seeds)
	return (perSeed * time.Duration(p.job.Seeds-s.Seeds)).Round(time.Second).String()
}
