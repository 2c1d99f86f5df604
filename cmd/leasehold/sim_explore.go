package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/sim/explore"
)

// exploreOptions is what the flags of sim say about exploring.
type exploreOptions struct {
	depth    int // steps; 0 runs worlds
	detours  int
	scenario string // the only one; all if empty
	replay   string // the way to go, instead of all
}

func (o *exploreOptions) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.depth, "explore", 0, "try all that can happen in so many `steps`, instead of worlds")
	flags.IntVar(&o.detours, "detours", 1, "with --explore: how often what is usual does not happen; -1 for no limit")
	flags.StringVar(&o.scenario, "scenario", "", "with --explore: the `name` of the only one to explore, such as settled/slow-leader")
	flags.StringVar(&o.replay, "replay", "", "with --explore and --scenario: show the `way` to a violation, as it was printed")
}

// maxExplore bounds steps and detours: far more than anybody has time for.
const maxExplore = 200

func (o *exploreOptions) validate() error {
	switch {
	case o.depth < 0 || o.depth > maxExplore || o.detours < -1 || o.detours > 100:
		return fmt.Errorf("--explore %d --detours %d: want at most %d and 100", o.depth, o.detours, maxExplore)
	case o.depth == 0 && (o.scenario != "" || o.replay != ""):
		return errors.New("--scenario and --replay are for --explore: add it, with a number of steps")
	case o.replay != "" && o.scenario == "":
		return errors.New("--replay needs the --scenario in which the way was found")
	}
	return nil
}

// scenarios are those that are to be explored.
func (o *exploreOptions) scenarios() ([]explore.Scenario, error) {
	all := explore.Scenarios(o.depth, int8(o.detours))
	if o.scenario == "" {
		return all, nil
	}
	s, err := explore.Find(all, o.scenario)
	return []explore.Scenario{s}, err
}

// An exploreReport is what was explored, as a script wants to know it. Fields may be
// added; none is renamed or removed.
type exploreReport struct {
	Depth     int                `json:"depth"`
	Detours   int                `json:"detours"`
	Mutant    string             `json:"mutant,omitempty"`
	Scenarios []exploredScenario `json:"scenarios"`
	States    uint64             `json:"states"`
	Steps     uint64             `json:"steps"`
	Elapsed   float64            `json:"elapsedSeconds"`
	Failed    int                `json:"violations"`
}

type exploredScenario struct {
	Name      string           `json:"name"`
	States    uint64           `json:"states"`
	Steps     uint64           `json:"steps"`
	Deepest   int              `json:"deepest"`
	Leaders   uint64           `json:"leaders"`
	Changes   uint64           `json:"changes"`
	Suspended uint64           `json:"suspendedStates"`
	Resumed   uint64           `json:"resumed"`
	Refused   uint64           `json:"refused"`
	Violation *exploredFailure `json:"violation,omitempty"`
}

type exploredFailure struct {
	Invariant string   `json:"invariant"`
	Text      string   `json:"text"`
	Path      []string `json:"path"`
	Replay    string   `json:"replay"`
}

// runExplorer tries everything, scenario by scenario, until one has a violation.
func (o *simOptions) runExplorer(ctx context.Context, out, progressTo screen) error {
	collectLess()
	scenarios, err := o.explore.scenarios()
	if err != nil {
		return err
	}
	if o.explore.replay != "" {
		return o.runReplay(scenarios[0], out)
	}
	total := exploreReport{Depth: o.explore.depth, Detours: o.explore.detours, Mutant: o.planted, Scenarios: []exploredScenario{}}
	for _, s := range scenarios {
		r, err := explore.Explore(ctx, s, explore.Options{Workers: o.parallel, Progress: o.exploreProgress(progressTo)})
		if err != nil && ctx.Err() == nil {
			return failed{err}
		}
		if progressTo.terminal {
			progressTo.say("%s", eraseLine)
		}
		total.add(r, o.replayWay(r))
		if !o.json {
			if err := write(out, r.String()+fmt.Sprintf(", %.1f s\n", r.Elapsed.Seconds())+o.violationText(r)); err != nil {
				return err
			}
		}
		if ctx.Err() != nil || r.Violated != nil {
			break
		}
	}
	if err := write(out, o.exploreText(&total)); err != nil {
		return err
	}
	return o.exploreStatus(total.Failed > 0, ctx.Err() != nil)
}

func (r *exploreReport) add(s *explore.Report, replay string) {
	one := exploredScenario{Name: s.Scenario, States: s.States, Steps: s.Steps, Deepest: s.Deepest, Leaders: s.Terms, Changes: s.Changes,
		Suspended: s.Suspended, Resumed: s.Resumed, Refused: s.Refused}
	if v := s.Violated; v != nil {
		one.Violation = &exploredFailure{v.Invariant, v.Text, v.Path, replay}
		r.Failed++
	}
	r.Scenarios = append(r.Scenarios, one)
	r.States += s.States
	r.Steps += s.Steps
	r.Elapsed += s.Elapsed.Seconds()
}

// exploreProgress says how far it is, where somebody looks.
func (o *simOptions) exploreProgress(to screen) func(*explore.Report) {
	said := time.Duration(0)
	return func(r *explore.Report) {
		line := fmt.Sprintf("%s: %s states, %s steps, %s states/s", r.Scenario, grouped(r.States), grouped(r.Steps),
			grouped(uint64(float64(r.States)/r.Elapsed.Seconds())))
		switch {
		case to.terminal:
			to.say("%s%s", eraseLine, line)
		case !o.json && r.Elapsed-said >= 6*lineEvery:
			said = r.Elapsed
			to.say("%s\n", line)
		}
	}
}

func (o *simOptions) violationText(r *explore.Report) string {
	v := r.Violated
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%s  %s\n%s\n  replay: %s\n\n", bad("VIOLATION"), v, indented(strings.Join(v.Path, "\n")), o.replayWay(r))
}

// exploreText is the end of the report for people, or all of that for scripts.
func (o *simOptions) exploreText(r *exploreReport) string {
	if o.json {
		return jsonText(r)
	}
	verdict := good("no violation")
	if r.Failed > 0 {
		verdict = bad(counted(r.Failed, "violation"))
	}
	return fmt.Sprintf("%s in %s states, %s steps, at most %d deep with %d detours, %.1f s, %s states/s\n", verdict, grouped(r.States),
		grouped(r.Steps), r.Depth, r.Detours, r.Elapsed, grouped(uint64(float64(r.States)/max(r.Elapsed, 1e-9))))
}

// runReplay shows the way to a violation.
func (o *simOptions) runReplay(s explore.Scenario, out screen) error {
	v, err := explore.Replay(s, o.explore.replay)
	if err != nil {
		return failed{err}
	}
	if err := write(out, strings.Join(v.Path, "\n")+"\n\n"+bad(v.String())+"\n"); err != nil {
		return err
	}
	return statusViolated
}

// replayWay is the command that shows the way to the violation of a report.
func (o *simOptions) replayWay(r *explore.Report) string {
	if r.Violated == nil {
		return ""
	}
	words := []string{"go run ./cmd/leasehold sim"}
	if o.planted != "" {
		words = append(words, "--mutant", o.planted)
	}
	return strings.Join(append(words, fmt.Sprintf("--explore %d --detours %d --scenario %s --replay %s",
		o.explore.depth, o.explore.detours, r.Scenario, r.Violated.Replay)), " ")
}

// exploreStatus is the exit status that an exploration amounts to.
func (o *simOptions) exploreStatus(violated, interrupted bool) error {
	switch {
	case violated:
		return statusViolated
	case interrupted:
		return statusInterrupted
	case o.planted != "":
		return statusSurvived
	}
	return nil
}
