package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
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
	Versions  []string   `json:"versions,omitempty"`
	Sections  []Section  `json:"sections,omitempty"`
	Headlines []Headline `json:"headlines,omitempty"`
	Goals     []Goal     `json:"goals,omitempty"`
	Losses    []string   `json:"losses,omitempty"`  // Markdown: comparisons in which a peer is better
	Skipped   []string   `json:"skipped,omitempty"` // contestants that did not take part, with the reason
	Failed    *Failure   `json:"failed,omitempty"`  // a later run that failed

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

// A Failure is a run that failed.
type Failure struct {
	Date string `json:"date"`
	Why  string `json:"why"`
}

// Add adds a section.
func (r *Result) Add(s Section) { r.Sections = append(r.Sections, s) }

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
func (r *Result) Missed() int {
	n := 0
	for _, g := range r.Goals {
		if !g.Met {
			n++
		}
	}
	return n
}

// AddPlot adds a section with a plot. Store draws it as BENCHMARK-NAME.svg.
func (r *Result) AddPlot(name, shows string, draw func(io.Writer) error) {
	file := r.Benchmark + "-" + name + ".svg"
	if r.plots == nil {
		r.plots = make(map[string]func(io.Writer) error)
	}
	r.plots[file] = draw
	r.Add(Section{Plot: resultsDir + "/" + file, Shows: shows})
}

// resultsDir is the directory of results below that of the documents.
const resultsDir = "benchmarks"

// Store writes the result and its plots under the directory of the documents.
func (r *Result) Store(docs string) error {
	dir := filepath.Join(docs, resultsDir)
	for file, draw := range r.plots {
		if err := WriteFile(filepath.Join(dir, file), draw); err != nil {
			return fmt.Errorf("drawing %s: %w", file, err)
		}
	}
	return WriteJSON(filepath.Join(dir, r.Benchmark+".json"), r)
}

// WriteFile writes a file, and creates its directory.
func WriteFile(name string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // pages for all readers
		return err
	}
	return os.WriteFile(name, text.Bytes(), 0o644) //nolint:gosec // the same
}

// WriteJSON writes a value with indentation.
func WriteJSON(name string, value any) error {
	return WriteFile(name, func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return out.Encode(value)
	})
}

// maxReason bounds the length of an error on the page.
const maxReason = 600

// StoreFailure records a failed run on the page. Earlier results stay. r contains the name,
// number and title of the benchmark, in case it has no earlier result.
func StoreFailure(docs string, r Result, why error) error {
	if err := r.load(filepath.Join(docs, resultsDir, r.Benchmark+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	reason := strings.Join(strings.Fields(why.Error()), " ")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + " ..."
	}
	r.Failed = &Failure{time.Now().UTC().Format(time.DateOnly), reason}
	if err := r.Store(docs); err != nil {
		return err
	}
	return WritePage(docs)
}

func (r *Result) load(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, r)
}

func loadResults(docs string) ([]*Result, error) {
	files, err := filepath.Glob(filepath.Join(docs, resultsDir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Result
	for _, file := range files {
		var r Result
		err := r.load(file)
		if err == nil && r.Benchmark == "" {
			err = errors.New("no benchmark name")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; run its benchmark again with -docs", file, err)
		}
		all = append(all, &r)
	}
	return all, nil
}

// PrintLines writes headlines as JSON lines.
func PrintLines(out io.Writer, all []Headline) error {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, h := range all {
		if err := lines.Encode(h); err != nil {
			return err
		}
	}
	return nil
}

// Print writes the result as plain text.
func (r *Result) Print(out io.Writer) error {
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
	for _, t := range append(tables, HeadlineTable(r.Headlines), r.GoalTable()) {
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
	_, err := fmt.Fprintf(out, "%s, %s, in %.0fs\n", r.Machine, r.Date, r.Seconds)
	return err
}

// HeadlineTable is headlines as a table.
func HeadlineTable(all []Headline) *Table {
	t := NewTable("Headlines", "what", "ours", "unit", "peer", "peer's", "times better")
	for _, h := range all {
		t.Add(h.Name, h.Value, h.Unit, h.Peer, h.PeerValue, h.Ratio)
	}
	return t
}

// GoalTable is the goals as a table.
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
