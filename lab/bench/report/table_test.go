package report

import (
	"bytes"
	"errors"
	"io"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThousands(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.4: "0", -0.4: "0", 999.4: "999", 999.6: "1,000", 51_029: "51,029", 123_456: "123,456", 1e6: "1,000,000", -1234: "-1,234",
	} {
		if got := Thousands(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.01234: "0.0123", 1.4249: "1.42", 33.84: "33.8", 999.4: "999", 999.5: "1,000", 1486.2: "1,486"} {
		if got := Number(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := NewTable("Some", "a", "b")
	table.Add("one", 2)
	table.Add("x|y")
	table.Add("s", Summary{Median: 1, Low: 0.5, High: 1234})
	const markdown = "| a | b |\n|---|---|\n| one | 2 |\n| x\\|y |  |\n| s | 1 |\n"
	if got := table.Markdown(); got != markdown {
		t.Errorf("got\n%s, want\n%s", got, markdown)
	}
	var out strings.Builder
	if err := table.Print(&out); err != nil {
		t.Fatal(err)
	}
	if want := "Some\na    b\none  2\nx|y\ns  1  0.5  1,234\n\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestPlot(t *testing.T) {
	p := &Plot{
		Title: "Cost", X: "servers", Y: "ns", LogX: true, LogY: true, MarkX: true,
		Curves: []Curve{
			{Name: "ours", Points: []Point{{X: 100, Y: 3, Low: 2, High: 4}, {X: 1000, Y: 30, Low: 20, High: 40}}},
			{Name: "the paper's", Points: []Point{{X: 100, Y: 9}}},
		},
	}
	var first, second bytes.Buffer
	for _, to := range []*bytes.Buffer{&first, &second} {
		if err := p.Write(to); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same plot gives different images")
	}
	for _, text := range []string{"<svg", "Cost", "ours", "the paper&#39;s", "1,000", "servers"} {
		if !strings.Contains(first.String(), text) {
			t.Errorf("the image lacks %q", text)
		}
	}
	p.Curves[0].Points[0].Y = 0
	if err := p.Write(io.Discard); err == nil || !strings.Contains(err.Error(), "ours") {
		t.Errorf("0 on a logarithmic axis: %v", err)
	}
}

func TestWriteFileReportsErrors(t *testing.T) {
	broken := errors.New("broken")
	if err := WriteFile(t.TempDir()+"/x", func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestVersions(t *testing.T) {
	deps := []*debug.Module{
		{Path: "a", Version: "v1"},
		{Path: "b", Version: "v2", Replace: &debug.Module{Path: "c", Version: "v3"}},
		{Path: "d", Version: "v4", Replace: &debug.Module{Path: "../d"}},
	}
	if diff := cmp.Diff([]string{"d v4", "b v3", "a v1"}, versionsIn(deps, []string{"d", "b", "x", "a"})); diff != "" {
		t.Error(diff)
	}
}
