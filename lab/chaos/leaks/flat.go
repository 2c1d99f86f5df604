package leaks

import "slices"

// least is how many samples a life must have to be judged: four in each quarter.
const least = 16

// A measure is something that a process has, and how much more of it in the last quarter than
// in the second is no growth: a quarter more, and some. In two hours there are some 300
// storms between the two. So what is left behind after one of five storms is found: 60
// goroutines or descriptors where there were about 50.
type measure struct {
	name string
	of   func(Sample) float64
	room float64
}

func measures() []measure {
	return []measure{
		{"bytes of memory", func(s Sample) float64 { return s.Memory }, 8 << 20}, // of which the runtime gives back what it does not need, late
		{"bytes of heap", func(s Sample) float64 { return s.Heap }, 4 << 20},
		{"goroutines", func(s Sample) float64 { return s.Goroutines }, 16},
		{"descriptors", func(s Sample) float64 { return s.Descriptors }, 8},
	}
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
