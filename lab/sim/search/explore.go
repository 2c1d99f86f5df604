package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
	"github.com/leasehold-dev/leasehold/server/console"
)

func (s *Job) validateExploration() error {
	switch {
	case s.Depth < 0 || s.Depth > maxDepth || s.Detours < -1 || s.Detours > 100:
		return fmt.Errorf("--explore %d --detours %d: the maximum is %d steps and 100 detours", s.Depth, s.Detours, maxDepth)
	case s.Depth == 0 && (s.Scenario != "" || s.Replay != ""):
		return errors.New("--scenario and --replay require --explore, with a number of steps")
	case s.Replay != "" && s.Scenario == "":
		return errors.New("--replay requires the --scenario of the violation")
	}
	_, err := s.scenarios()
	return err
}

func (s *Job) scenarios() ([]explorer.Exploration, error) {
	all := s.Scenarios(s.Depth, int8(s.Detours))
	if s.Scenario == "" {
		return all, nil
	}
	one, err := explorer.Find(all, s.Scenario)
	return []explorer.Exploration{one}, err
}

// An exploration is the JSON form of the result of an exploration. Fields may be added; none is renamed or
// removed.
type exploration struct {
	Depth     int        `json:"depth"`
	Detours   int        `json:"detours"`
	Mutant    string     `json:"mutant,omitempty"`
	Scenarios []explored `json:"scenarios"`
	States    uint64     `json:"states"`
	Steps     uint64     `json:"steps"`
	Elapsed   float64    `json:"elapsedSeconds"`
	Failed    int        `json:"violations"`
}

type explored struct {
	*explorer.Report
	replay string // the command that repeats the violation
}

// MarshalJSON adds the figures of the protocol to the other fields.
func (e explored) MarshalJSON() ([]byte, error) {
	document := map[string]any{"name": e.Scenario, "states": e.States, "steps": e.Steps, "deepest": e.Deepest}
	for _, f := range e.Figures {
		document[f.Key] = f.N
	}
	if v := e.Violated; v != nil {
		document["violation"] = struct {
			Invariant string   `json:"invariant"`
			Text      string   `json:"text"`
			Path      []string `json:"path"`
			Replay    string   `json:"replay"`
		}{v.Invariant, v.Text, v.Path, e.replay}
	}
	return json.Marshal(document)
}

func (s *Job) runExplorer(ctx context.Context, out, progressTo console.Screen) (Outcome, error) {
	scenarios, err := s.scenarios()
	if err != nil {
		return Passed, err
	}
	total := exploration{Depth: s.Depth, Detours: s.Detours, Mutant: s.Planted, Scenarios: []explored{}}
	for _, one := range scenarios {
		progress := console.NewProgress(progressTo, s.JSON)
		r, err := one.Explore(ctx, explorer.Options{Workers: s.Parallel, Progress: func(r *explorer.Report) { progress.Report(r.Elapsed, -1, exploredSoFar(r)) }})
		progress.Stop()
		if err != nil && ctx.Err() == nil {
			return Passed, err
		}
		found := explored{r, s.replayPath(r)}
		total.add(found)
		if !s.JSON {
			if err := write(out, found.text()); err != nil {
				return Passed, err
			}
		}
		if ctx.Err() != nil || r.Violated != nil {
			break
		}
	}
	text := total.text()
	if s.JSON {
		text = console.JSON(total)
	}
	return s.outcome(total.Failed > 0, ctx.Err() != nil), write(out, text)
}

func (t *exploration) add(e explored) {
	t.Scenarios = append(t.Scenarios, e)
	t.States += e.States
	t.Steps += e.Steps
	t.Elapsed += e.Elapsed.Seconds()
	if e.Violated != nil {
		t.Failed++
	}
}

func exploredSoFar(r *explorer.Report) string {
	return fmt.Sprintf("%s: %s states, %s steps, %s states/s", r.Scenario, console.Grouped(r.States), console.Grouped(r.Steps),
		console.Grouped(uint64(float64(r.States)/r.Elapsed.Seconds())))
}

func (e explored) text() string {
	text := fmt.Sprintf("%v, %.1f s\n", e.Report, e.Elapsed.Seconds())
	if v := e.Violated; v != nil {
		text += fmt.Sprintf("%s  %s\n%s\n  replay: %s\n\n", console.Bad("VIOLATION"), v, indented(strings.Join(v.Path, "\n")), e.replay)
	}
	return text
}

// text returns the last line of the text report.
func (t *exploration) text() string {
	verdict := console.Good("no violation")
	if t.Failed > 0 {
		verdict = console.Bad(console.Counted(t.Failed, "violation"))
	}
	return fmt.Sprintf("%s in %s states, %s steps, at most %d deep with %d detours, %.1f s, %s states/s\n", verdict, console.Grouped(t.States),
		console.Grouped(t.Steps), t.Depth, t.Detours, t.Elapsed, console.Grouped(uint64(float64(t.States)/max(t.Elapsed, 1e-9))))
}

func (s *Job) runReplay(out console.Screen) (Outcome, error) {
	scenarios, err := s.scenarios()
	if err != nil {
		return Passed, err
	}
	v, err := scenarios[0].Replay(s.Replay)
	if err != nil {
		return Passed, err
	}
	return Violated, write(out, strings.Join(v.Path, "\n")+"\n\n"+console.Bad(v.String())+"\n")
}

// replayPath returns the command that repeats the violation of a report.
func (s *Job) replayPath(r *explorer.Report) string {
	if r.Violated == nil {
		return ""
	}
	return s.replay(fmt.Sprintf("--explore %d --detours %d --scenario %s --replay %s", s.Depth, s.Detours, r.Scenario, r.Violated.Replay))
}
