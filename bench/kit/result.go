package kit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"
)

// A Result is what a question found out. It holds all that its section of the
// page needs, so that the page can be made without asking again.
type Result struct {
	Question  string     `json:"question"`
	Number    int        `json:"number"` // where on the page
	Title     string     `json:"title"`
	Asks      string     `json:"asks"`    // Markdown: what is compared with what, and how
	Command   string     `json:"command"` // that found it out
	Date      string     `json:"date"`
	Seconds   float64    `json:"seconds"` // that it took
	Machine   Machine    `json:"machine"`
	Versions  []string   `json:"versions,omitempty"`
	Sections  []Section  `json:"sections,omitempty"`
	Headlines []Headline `json:"headlines,omitempty"`
	Goals     []Goal     `json:"goals,omitempty"`
	Losses    []string   `json:"losses,omitempty"`  // Markdown: what we lose, to whom and why
	Skipped   []string   `json:"skipped,omitempty"` // who did not take part, and why
	Failed    *Failure   `json:"failed,omitempty"`  // if the question could not be answered since

	plots map[string]func(io.Writer) error // by file
}

// A Section is a part of a result.
type Section struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"` // Markdown
	Table *Table `json:"table,omitempty"`
	Plot  string `json:"plot,omitempty"` // a file, relative to the page
	Shows string `json:"shows,omitempty"`
}

// A Headline is a number beside the one that it is compared with.
type Headline struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Peer      string  `json:"peer"`
	PeerValue float64 `json:"peerValue"`
	// Ratio says how many times better we are than the peer. Below 1 the peer is
	// better.
	Ratio float64 `json:"ratio"`
}

// A Goal is what we want, and what became of it.
type Goal struct {
	Want string `json:"want"`
	Have string `json:"have"`
	Met  bool   `json:"met"`
}

// Add adds a section.
func (r *Result) Add(s Section) { r.Sections = append(r.Sections, s) }

// Less adds a headline of which less is better: a latency, a size.
func (r *Result) Less(name string, value float64, unit, peer string, peerValue float64) {
	r.headline(Headline{name, value, unit, peer, peerValue, peerValue / value})
}

// More adds a headline of which more is better: a rate.
func (r *Result) More(name string, value float64, unit, peer string, peerValue float64) {
	r.headline(Headline{name, value, unit, peer, peerValue, value / peerValue})
}

func (r *Result) headline(h Headline) {
	h.Name = r.Question + "." + h.Name
	if math.IsNaN(h.Ratio) || math.IsInf(h.Ratio, 0) {
		h.Ratio = 0 // unknown; JSON has no other way to say so
	}
	for _, v := range []*float64{&h.Value, &h.PeerValue, &h.Ratio} {
		*v = significant(*v)
	}
	r.Headlines = append(r.Headlines, h)
}

// significant keeps four digits: more would be noise.
func significant(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// Want adds a goal. What we have is said with [Number], and unit behind it.
func (r *Result) Want(what string, have float64, unit string, met bool) {
	text := Number(have)
	if unit != "" {
		text += " " + unit
	}
	r.Goals = append(r.Goals, Goal{what, text, met})
}

// Missed returns how many goals were not met.
func (r *Result) Missed() int {
	n := 0
	for _, g := range r.Goals {
		if !g.Met {
			n++
		}
	}
	return n
}

// AddPlot adds a section with a plot. It is drawn when the result is stored, as
// QUESTION-NAME.svg beside it.
func (r *Result) AddPlot(name, shows string, draw func(io.Writer) error) {
	file := r.Question + "-" + name + ".svg"
	if r.plots == nil {
		r.plots = make(map[string]func(io.Writer) error)
	}
	r.plots[file] = draw
	r.Add(Section{Plot: resultsDir + "/" + file, Shows: shows})
}

// resultsDir is where results are, under the directory of the documents.
const resultsDir = "benchmarks"

// Store writes the result and its plots under the directory of the documents.
func (r *Result) Store(docs string) error {
	dir := filepath.Join(docs, resultsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pages for everybody
		return err
	}
	for file, draw := range r.plots {
		if err := WriteFile(filepath.Join(dir, file), draw); err != nil {
			return fmt.Errorf("drawing %s: %w", file, err)
		}
	}
	return WriteFile(filepath.Join(dir, r.Question+".json"), func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return out.Encode(r)
	})
}

// LoadResults reads all results that are stored under the directory of the
// documents, in no order.
func LoadResults(docs string) ([]*Result, error) {
	files, err := filepath.Glob(filepath.Join(docs, resultsDir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Result
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var r Result
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s: %w; run its question again with -docs", file, err)
		}
		if r.Question == "" {
			return nil, fmt.Errorf("%s: %w", file, errors.New("it names no question; run that again with -docs"))
		}
		all = append(all, &r)
	}
	return all, nil
}

// PrintLines writes the headlines as JSON, one on a line.
func (r *Result) PrintLines(out io.Writer) error {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, h := range r.Headlines {
		if err := lines.Encode(h); err != nil {
			return err
		}
	}
	return nil
}

// Print writes the result as plain text.
func (r *Result) Print(out io.Writer) error {
	tables := []*Table{}
	for _, s := range r.Sections {
		if s.Table != nil {
			t := *s.Table
			if t.Title == "" {
				t.Title = s.Title
			}
			tables = append(tables, &t)
		}
	}
	tables = append(tables, HeadlineTable(r.Headlines))
	if len(r.Goals) > 0 {
		tables = append(tables, r.GoalTable())
	}
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		if err := t.Print(out); err != nil {
			return err
		}
	}
	for _, s := range r.Skipped {
		if _, err := fmt.Fprintln(out, "SKIPPED", s); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s, %s, in %v\n", r.Machine, r.Date, time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	return err
}

// HeadlineTable is headlines for people.
func HeadlineTable(all []Headline) *Table {
	t := NewTable("Headlines", "what", "ours", "unit", "peer", "peer's", "times better")
	for _, h := range all {
		t.Add(h.Name, Number(h.Value), h.Unit, h.Peer, Number(h.PeerValue), Number(h.Ratio))
	}
	return t
}

// GoalTable is the goals for people.
func (r *Result) GoalTable() *Table {
	t := NewTable("What we want", "goal", "have", "met")
	for _, g := range r.Goals {
		met := "yes"
		if !g.Met {
			met = "NO"
		}
		t.Add(g.Want, g.Have, met)
	}
	return t
}
