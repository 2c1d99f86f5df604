package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrid(t *testing.T) {
	counted := []Entry{{"one", "1"}, {"two", "22"}, {"three", "3"}, {"four", "4,444"}, {"five", ""}}
	for name, test := range map[string]struct {
		entries []Entry
		width   int
		want    string
	}{
		"nothing": {nil, 80, ""},
		"one column, if there is no room": {counted[:2], 0, "" +
			"  one   1\n" +
			"  two  22\n"},
		"two columns, read downwards": {counted, 30, "" +
			"  one        1   four   4,444\n" +
			"  two       22   five\n" +
			"  three      3\n"},
		"just enough room": {counted[:4], 29, "" +
			"  one        1   three      3\n" +
			"  two       22   four   4,444\n"},
		"not quite": {counted[:2], 18, "" +
			"  one   1\n" +
			"  two  22\n"},
		"names alone": {[]Entry{{"a"}, {"bb"}, {"c"}}, 12, "" +
			"  a    c\n" +
			"  bb\n"},
	} {
		if diff := cmp.Diff(test.want, Grid(test.entries, test.width)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 999: "999", 1000: "1,000", 12345: "12,345", 123456: "123,456", 1234567: "1,234,567", 1<<64 - 1: "18,446,744,073,709,551,615",
	} {
		if got := Grouped(n); got != want {
			t.Errorf("Grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 worlds", 1: "1 world", 2000: "2,000 worlds"} {
		if got := Counted(n, "world"); got != want {
			t.Errorf("Counted(%d) = %q, want %q", n, got, want)
		}
	}
}
