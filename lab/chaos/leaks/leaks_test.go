package leaks

import (
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestCourses: growth is distinguished from noise.
func TestCourses(t *testing.T) {
	const storms = 600 // as in two hours
	random := rand.New(rand.NewPCG(1, 1))
	for _, test := range []struct {
		name   string
		n      int
		at     func(i int) float64 // goroutines after a storm
		judged bool
		flat   bool
	}{
		{"a constant", storms, func(int) float64 { return 50 }, true, true},
		{"noise", storms, func(int) float64 { return 50 + 40*random.Float64() }, true, true},
		{"a saw", storms, func(i int) float64 { return 50 + float64(i%40) }, true, true},
		{"rare peaks", storms, func(i int) float64 { return 50 + 1e4*float64(i%9/8) }, true, true},
		{"a beginning", storms, func(i int) float64 { return float64(min(500, 50+5*i)) }, true, true},
		{"one that falls", storms, func(i int) float64 { return float64(1000 - i) }, true, true},
		{"one more after each storm", storms, func(i int) float64 { return 50 + float64(i) }, true, false},
		{"one more after each fifth storm", storms, func(i int) float64 { return 50 + float64(i/5) }, true, false},
		{"one more after each fifth storm, and noise", storms, func(i int) float64 { return 50 + float64(i/5) + 10*random.Float64() }, true, false},
		{"a late step", storms, func(i int) float64 { return 50 + 100*float64(i/(storms*3/4)) }, true, false},
		{"a leak in a short run", least, func(i int) float64 { return 50 + 5*float64(i) }, true, false},
		{"a leak with too few samples", least - 1, func(i int) float64 { return 50 + 100*float64(i) }, false, true},
		{"unknown values", storms, func(int) float64 { return 0 }, false, true},
	} {
		l := NewLog()
		for i := range test.n {
			l.Add("m1", 7, Sample{Goroutines: test.at(i)})
		}
		courses, _ := l.Courses()
		if judged := len(courses) == 1; judged != test.judged {
			t.Errorf("%s: judged %v", test.name, courses)
			continue
		}
		for _, c := range courses {
			if c.Flat() != test.flat {
				t.Errorf("%s: %v", test.name, c.String())
			}
		}
	}
}

// TestEachMeasure is judged separately.
func TestEachMeasure(t *testing.T) {
	for i, leak := range []Sample{{Memory: 1 << 20}, {Heap: 1 << 20}, {Goroutines: 1}, {Descriptors: 1}} {
		l := NewLog()
		for n := range 100 {
			more := func(per, base float64) float64 { return base + per*float64(n) }
			l.Add("m1", 7, Sample{Memory: more(leak.Memory, 1<<20), Goroutines: more(leak.Goroutines, 50)},
				Sample{Heap: more(leak.Heap, 1<<20), Descriptors: more(leak.Descriptors, 30)})
		}
		courses, _ := l.Courses()
		if len(courses) != 4 {
			t.Fatalf("judged %v", courses)
		}
		for j, c := range courses {
			if c.Flat() == (i == j) {
				t.Errorf("%+v leaks, and %s", leak, c.String())
			}
		}
	}
}

// TestLives: a restarted process has new samples.
func TestLives(t *testing.T) {
	l := NewLog()
	for i := range 100 {
		l.Add("m1", i/50, Sample{Goroutines: float64(1 + i/50*1000)})
		l.Add("o1", i, Sample{Goroutines: float64(i)})
	}
	courses, short := l.Courses()
	if len(courses) != 2 || courses[0].Late != 1 || courses[1].Early != 1001 || short != 100 {
		t.Errorf("%+v, and %d too short", courses, short)
	}
	for _, c := range courses {
		if !c.Flat() {
			t.Error(c.String())
		}
	}
}

func TestPage(t *testing.T) {
	const page = "# HELP go_goroutines how many\ngo_goroutines 49\ngo_gc_gogc_percent 300\nleasehold_owners{namespace=\"a b\"} 3\ngo_memstats_next_gc_bytes 8e+06\n"
	for text, want := range map[string]Sample{page: {Goroutines: 49, Heap: 2e6}, "404 not found\n": {}} {
		found, err := ReadMetrics(strings.NewReader(text))
		if got := FromMetrics(found); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

// TestSampleOfThisProcess: all values are known.
func TestSampleOfThisProcess(t *testing.T) {
	runtime.GC()
	answer := httptest.NewRecorder()
	Serve(answer, nil)
	inside, err := Read(answer.Body)
	if err != nil || inside.Heap < 1000 || inside.Goroutines < 1 {
		t.Errorf("got %+v, %v", inside, err)
	}
	outside, err := Outside(os.Getpid())
	if err != nil || runtime.GOOS == "linux" && (outside.Memory < 1<<16 || outside.Descriptors < 3) {
		t.Errorf("got %+v, %v", outside, err)
	}
}
