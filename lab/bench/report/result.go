package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// A Result is the result of a benchmark. It contains its whole section of the page, so that the
// page can be written without running it again.
type Result struct {
	Benchmark string     `json:"question"`
	Number    int        `json:"number"` // of its section on the page
	Title     string     `json:"title"`
	About     string     `json:"asks"`    // Markdown: the comparison and the method
	Command   string     `json:"command"` // of the run
	Date      string     `json:"date"`
	Seconds   float64    `json:"seconds"` // duration
	Machine   Machine    `json:"machine"`
	Sections  []Section  `json:"sections,omitempty"`
	Headlines []Headline `json:"headlines,omitempty"`
	Goals     []Goal     `json:"goals,omitempty"`
	Losses    []string   `json:"losses,omitempty"` // Markdown: comparisons in which a peer is better
}

// A Section is a part of a result.
type Section struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"` // Markdown
	Table *Table `json:"table,omitempty"`
}

// A Headline is a number and the one of a peer.
type Headline struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Peer      string  `json:"peer"`
	PeerValue float64 `json:"peerValue"`
	// Ratio is PeerValue / Value for costs, Value / PeerValue for rates. Below 1 the peer is
	// better.
	Ratio float64 `json:"ratio"`
}

// A Goal is a target and the measured value.
type Goal struct {
	Want string `json:"want"`
	Have string `json:"have"`
	Met  bool   `json:"met"`
}

// Add adds a section. Title and text may be empty.
func (r *Result) Add(title, text string, t *Table) {
	r.Sections = append(r.Sections, Section{title, text, t})
}

// Less adds a headline for a cost, such as a latency or a size.
func (r *Result) Less(name string, value float64, unit, peer string, peerValue float64) {
	r.headline(Headline{name, value, unit, peer, peerValue, peerValue / value})
}

// More adds a headline for a rate.
func (r *Result) More(name string, value float64, unit, peer string, peerValue float64) {
	r.headline(Headline{name, value, unit, peer, peerValue, value / peerValue})
}

func (r *Result) headline(h Headline) {
	h.Name = r.Benchmark + "." + h.Name
	for _, v := range []*float64{&h.Value, &h.PeerValue, &h.Ratio} {
		*v = significant(*v)
	}
	r.Headlines = append(r.Headlines, h)
}

// significant rounds to four digits. NaN and infinities, which JSON does not support, become 0.
func significant(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// Want adds a goal. The value is formatted with [Number], followed by the unit.
func (r *Result) Want(what string, have float64, unit string, met bool) {
	r.Goals = append(r.Goals, Goal{what, strings.TrimSpace(Number(have) + " " + unit), met})
}

// Lose adds a comparison in which a peer is better, and the reason. Floats are formatted with
// [Number].
func (r *Result) Lose(format string, args ...any) {
	for i, arg := range args {
		if x, ok := arg.(float64); ok {
			args[i] = Number(x)
		}
	}
	r.Losses = append(r.Losses, fmt.Sprintf(format, args...))
}

// Missed returns the number of goals that were not met.
func (r *Result) Missed() (n int) {
	for _, g := range r.Goals {
		if !g.Met {
			n++
		}
	}
	return n
}

// print writes the result as plain text.
func (r *Result) print(out io.Writer) error {
	var tables []*Table
	for _, s := range r.Sections {
		if s.Table != nil {
			t := *s.Table
			if t.Title == "" {
				t.Title = s.Title
			}
			tables = append(tables, &t)
		}
	}
	for _, t := range append(tables, headlineTable(r.Headlines), r.goalTable()) {
		if len(t.Rows) == 0 {
			continue
		}
		if err := t.Print(out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s, %s, in %.0fs\n", r.Machine, r.Date, r.Seconds)
	return err
}

func headlineTable(all []Headline) *Table {
	t := NewTable("Headlines", "what", "ours", "unit", "peer", "peer's", "times better")
	for _, h := range all {
		t.Add(h.Name, h.Value, h.Unit, h.Peer, h.PeerValue, h.Ratio)
	}
	return t
}

func (r *Result) goalTable() *Table {
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

// printLines writes headlines as JSON lines.
func printLines(out io.Writer, all []Headline) error {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, h := range all {
		if err := lines.Encode(h); err != nil {
			return err
		}
	}
	return nil
}
