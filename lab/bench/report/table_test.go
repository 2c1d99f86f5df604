package report

import (
	"strings"
	"testing"
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
	table := NewTable("Some", "a", "b", "low", "high")
	table.Add("one", 2)
	table.Add("x|y")
	table.Add("s", Summary{Median: 1, Low: 0.5, High: 1234})
	const markdown = "| a | b | low | high |\n|---|---|---|---|\n| one | 2 |  |  |\n| x\\|y |  |  |  |\n| s | 1 | 0.5 | 1,234 |\n"
	if got := table.Markdown(); got != markdown {
		t.Errorf("got\n%s, want\n%s", got, markdown)
	}
	var out strings.Builder
	if err := table.Print(&out); err != nil {
		t.Fatal(err)
	}
	if want := "Some\na    b  low  high\none  2\nx|y\ns    1  0.5  1,234\n\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
