// Package leaks measures what processes use while they live: memory, goroutines, descriptors. A
// process that runs for months must not use more and more, whatever happens to it.
//
// Each process is sampled after each storm, when all faults are over. Compared are the medians of
// the second and the last quarter of its life: in the first quarter caches and pools fill, and a
// single sample depends on garbage collection. A process that is killed begins another life, and a
// short one proves nothing: so some processes must be spared.
package leaks

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// A Log keeps samples of processes. It may be used from many goroutines at once.
type Log struct {
	mu    sync.Mutex
	lives map[string]*life // the present one of each name
	long  []life           // that are over, and were long enough to be judged
	short int              // that are over, and were not
}

// A life is a process, from its start to its end.
type life struct {
	name    string
	pid     int
	samples []Sample
}

// NewLog returns a log.
func NewLog() *Log { return &Log{lives: make(map[string]*life)} }

// Add takes up what is known of the process that has a name now.
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

// A Course is how what a process had of something went on.
type Course struct {
	Process string  `json:"process"`
	What    string  `json:"what"`
	Samples int     `json:"samples"`
	Early   float64 `json:"early"` // the median of its second quarter
	Late    float64 `json:"late"`  // and of its last
	Most    float64 `json:"most"`  // that it ever had
	Allowed float64 `json:"allowed"`
}

// Flat says whether it did not grow.
func (c *Course) Flat() bool { return c.Late <= c.Allowed }

func (c *Course) String() string {
	return fmt.Sprintf("the %s of %s were %.0f in the second quarter of its life and %.0f in the last, of %d samples; %.0f would be flat",
		c.What, c.Process, c.Early, c.Late, c.Samples, c.Allowed)
}

// Courses are those of all lives that were long enough, and how many were not.
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

// least is how many samples a life must have to be judged: four in each quarter.
const least = 16

// A measure is a quantity of a process. The last quarter may exceed the second by a quarter, and room. In
// two hours some 300 storms lie between the two: a leak in one of five storms is found.
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

// share is how much more is no growth.
const share = 0.25

// course says how it went on in a life, unless that is not known.
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
