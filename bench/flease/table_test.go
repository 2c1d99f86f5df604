package main

import (
	"strings"
	"testing"
)

func TestThousands(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.4: "0", -0.4: "0", 999.4: "999", 999.6: "1,000", 51_029: "51,029", 123_456: "123,456", 1e6: "1,000,000", -1234: "-1,234",
	} {
		if got := thousands(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := table{title: "Some", header: []string{"a", "b"}}
	table.add("one", "2")
	table.add("x|y")
	const markdown = "| a | b |\n|---|---|\n| one | 2 |\n| x\\|y |  |\n"
	if got := table.markdown(); got != markdown {
		t.Errorf("got\n%s, want\n%s", got, markdown)
	}
	var out strings.Builder
	if err := table.print(&out); err != nil {
		t.Fatal(err)
	}
	if want := "Some\na    b\none  2\nx|y\n\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
