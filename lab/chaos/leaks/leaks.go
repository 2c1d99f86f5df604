// Package leaks measures the resource usage of processes: memory, goroutines, descriptors. A process that
// runs for months must not use more and more, with any faults.
//
// Each process is sampled after each storm, when all faults have ended. The medians of the second and the
// last quarter of its samples are compared: in the first quarter caches and pools fill, and a single sample
// depends on garbage collection. A restarted process has new samples, and a short life is not judged. So some
// processes must be excluded from faults that end them.
package leaks

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// A Log has samples of processes. It is safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	lives map[string]*life // the present one of each name
	long  []life           // ended, with enough samples
	short int              // number of ended ones with too few samples
}

// A life has the samples of a process from its start to its end.
type life struct {
	name    string
	pid     int
	samples []Sample
}

// NewLog returns a log.
func NewLog() *Log { return &Log{lives: make(map[string]*life)} }

// Add adds a sample of the present process with a name.
func (l *Log) Add(name string, pid int, known ...Sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.lives[name]
	if now == nil || now.pid != pid {
		switch {
		case now == nil:
		case len(now.samples) < least:
			l.short++
		default:
			l.long = append(l.long, *now)
		}
		now = &life{name: name, pid: pid}
		l.lives[name] = now
	}
	var s Sample
	for _, k := range known {
		s = s.and(k)
	}
	now.samples = append(now.samples, s)
}

// A Course is the usage of one resource by one process over time.
type Course struct {
	Process string  `json:"process"`
	What    string  `json:"what"`
	Samples int     `json:"samples"`
	Early   float64 `json:"early"` // median of the second quarter
	Late    float64 `json:"late"`  // median of the last quarter
	Most    float64 `json:"most"`  // maximum
	Allowed float64 `json:"allowed"`
}

// Flat reports whether the usage did not grow.
func (c *Course) Flat() bool { return c.Late <= c.Allowed }

func (c *Course) String() string {
	return fmt.Sprintf("the %s of %s were %.0f in the second quarter of its life and %.0f in the last, of %d samples; %.0f is allowed",
		c.What, c.Process, c.Early, c.Late, c.Samples, c.Allowed)
}

// Courses returns those of all lives with enough samples, and the number of others.
func (l *Log) Courses() (all []Course, short int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	short = l.short
	judged := slices.Clone(l.long)
	for _, now := range l.lives {
		if len(now.samples) < least {
			short++
			continue
		}
		judged = append(judged, *now)
	}
	slices.SortStableFunc(judged, func(a, b life) int { return cmp.Compare(a.name, b.name) })
	for _, life := range judged {
		for _, m := range measures {
			if c, ok := m.course(life.samples); ok {
				c.Process = life.name
				all = append(all, c)
			}
		}
	}
	return all, short
}

// least is the minimum number of samples of a life: four in each quarter.
const least = 16

// A measure is a resource. The last quarter may exceed the second by a quarter, and room. In two hours there
// are about 300 storms between the two: a leak in one of five storms is found.
type measure struct {
	name string
	of   func(Sample) float64
	room float64
}

var measures = []measure{
	{"bytes of memory", func(s Sample) float64 { return s.Memory }, 8 << 20}, // the runtime returns unused memory late
	{"bytes of heap", func(s Sample) float64 { return s.Heap }, 4 << 20},
	{"goroutines", func(s Sample) float64 { return s.Goroutines }, 16},
	{"descriptors", func(s Sample) float64 { return s.Descriptors }, 8},
}

// share is the fraction of growth that is allowed.
const share = 0.25

// course returns the course of a life, unless too few samples are known.
func (m *measure) course(life []Sample) (Course, bool) {
	var values []float64
	for _, s := range life {
		if v := m.of(s); v > 0 {
			values = append(values, v)
		}
	}
	if len(values) < least {
		return Course{}, false
	}
	quarter := len(values) / 4
	c := Course{
		What: m.name, Samples: len(values), Most: slices.Max(values),
		Early: median(values[quarter : 2*quarter]), Late: median(values[len(values)-quarter:]),
	}
	c.Allowed = c.Early*(1+share) + m.room
	return c, true
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
