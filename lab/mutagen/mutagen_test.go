package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository: the command runs there.
const root = "../.."

// TestSample runs all mutants of a package, and compares the survivors.
func TestSample(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, because it runs a process per mutant: runs without -short")
	}
	t.Chdir(root)
	const dir = "lab/mutagen/testdata/sample"
	p, err := load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	texts, _ := p.instrumented()
	n := &net{dir: t.TempDir(), texts: texts, stages: []stage{{name: ownTests, dir: dir}}}
	var survivors []string
	for _, m := range p.mutants() {
		result, err := n.run(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if isSurvivor(result) {
			survivors = append(survivors, m.id()+" - "+result)
		}
	}
	want := []string{
		"Clamp: compare: x < low => x <= low - survived",
		"Clamp: compare: x > high => x >= high - survived",
		"Divide: off by one: 0 => (0 + 1) (2) - survived",
		"receive: compare: v > 0 => v >= 0 - survived",
		"receive: off by one: 0 => (0 + 1) - survived",
		"unused: off by one: 1 => (1 + 1) - unreached",
	}
	if !slices.Equal(survivors, want) {
		t.Errorf("got\n %s\nwant\n %s", strings.Join(survivors, "\n "), strings.Join(want, "\n "))
	}
}

// TestMutants: each operator, and changes that do not compile.
func TestMutants(t *testing.T) {
	for _, test := range []struct{ body, want string }{
		{"if a > b { f(1, 2) }", "negate: a > b => !(a > b); delete: if a > b { f(1, 2) } => {}; compare: a > b => a >= b; delete: f(1, 2); swap: 1, 2 => 2, 1; off by one: 1 => (1 + 1); off by one: 2 => (2 + 1)"},
		{"if a == b { f() } else { g() }", "delete: else { g() }; compare: a == b => a != b; delete: f(); delete: g()"},
		{"x = a && b && c", "delete: x = a && b && c; drop operand: a && b && c => a && b; drop operand: a && b => a; drop operand: a && b => b"},
		{"x += min(a, b)", "arithmetic: x += min(a, b) => x -= min(a, b); delete: x += min(a, b); compare: min => max"},
		{"x := T{A: true, B: y}", "delete: A: true,; delete: B: y; flip: true => false"},
		{"switch { case a: f(); default: g() }", "delete: case a: f(); delete: f(); delete: default: g(); delete: g()"},
		{"select { case <-a: f() }", "delete: case <-a: f(); delete: f()"},
		{"x++; x++", "delete: x++; delete: x++ (2)"},
		{"m.log.Info(a, 1); panic(a + b); return", "delete: return"},
		{"x := make([]int, 0, 5)", "off by one: 0 => (0 + 1); off by one: 5 => (5 + 1)"},
	} {
		s, err := parse("test.go", "package p; func F() { "+test.body+" }")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range s.functions()[0].mutants {
			got = append(got, strings.TrimPrefix(m.id(), "F: "))
		}
		if s := strings.Join(got, "; "); s != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.body, s, test.want)
		}
	}
}

// TestPublished: the kill rates do not fall, the survivors exist, and the page is generated.
func TestPublished(t *testing.T) {
	t.Chdir(root)
	s, err := readSurvivors()
	if err != nil {
		t.Fatal(err)
	}
	rates, err := readRates()
	if err != nil {
		t.Fatal(err)
	}
	for dir, r := range rates {
		if r.percent() < r.Floor {
			t.Errorf("%s: the kill rate is %.1f %%, below the floor of %.1f %%: kill survivors of %s", dir, r.percent(), r.Floor, survivorsFile)
		}
		if n := len(s[dir]); n != r.open()+r.Equivalent {
			t.Errorf("%s: %d survivors, but %d are listed: run go run ./lab/mutagen -package %s", dir, r.open()+r.Equivalent, n, dir)
		}
	}
	for dir := range s {
		if gone, err := s.dropGone(dir); err != nil || gone > 0 {
			t.Errorf("%s: %d survivors of %s do not exist any more: run go run ./lab/mutagen -page (%v)", dir, gone, survivorsFile, err)
		}
	}
	if text, err := os.ReadFile(pageFile); err != nil || string(text) != page(rates) {
		t.Errorf("%s is not generated from %s: run go run ./lab/mutagen -page (%v)", pageFile, ratesFile, err)
	}
}

func TestSurvivorsText(t *testing.T) {
	const text = survivorsHead + "\n[a/b]\nF: delete: x++\n    equivalent: x is not used\nG: flip: true => false\n\n[c]\n"
	s, err := parseSurvivors(text)
	if err != nil {
		t.Fatal(err)
	}
	if s.String() != text {
		t.Errorf("got %s\nwant %s", s, text)
	}
	for _, wrong := range []string{"F: delete: x++\n", "[a]\n    equivalent: of nothing\n", "[a]\nF: x\n  because\n"} {
		if _, err := parseSurvivors(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestRate(t *testing.T) {
	r := rate{Mutants: 12, Run: 11, Equivalent: 1, Killed: map[string]int{ownTests: 6, "sim": 1}}
	if r.percent() != 70 || r.open() != 3 {
		t.Errorf("%v %%, %d open, want 70 and 3", r.percent(), r.open())
	}
}
