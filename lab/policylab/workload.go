package policylab

import (
	"math"

	"github.com/leasehold-dev/leasehold"
)

// A Workload says what the keys cost in each period, counted from 0. It is safe
// for concurrent use, and the same period has the same load whenever it is
// asked for.
type Workload interface {
	At(period int) *Load
}

// A Kind is a kind of workload, for people to choose from.
type Kind struct {
	Name  string
	About string
}

// The names of the workloads.
const (
	NameZipf     = "zipf"
	NameHot      = "hot"
	NameDiurnal  = "diurnal"
	NameRecorded = "recorded"
	NameUniform  = "uniform"
)

// Kinds lists the workloads.
func Kinds() []Kind {
	return []Kind{
		{NameZipf, "few keys cost much and many cost little: the key of rank r costs 1/r^alpha"},
		{NameHot, "one key costs a given share of everything; the rest is zipf"},
		{NameDiurnal, "zipf, in a wave that wanders over the key space and rises and falls with the day"},
		{NameRecorded, "what a file says"},
		{NameUniform, "every key costs the same"},
	}
}

// steady is a workload that does not change.
type steady struct{ load *Load }

func (s steady) At(int) *Load { return s.load }

// Uniform is the workload in which every key costs the same.
func Uniform() Workload { return steady{newLoad(nil, []RangeCost{{leasehold.All, 1}})} }

// Hot is the workload of a zipf distribution in which one key besides costs the
// share hot of everything, 0 to 1.
func Hot(hot float64, rest Zipf) (Workload, error) {
	const op = "hot workload"
	if !(hot > 0 && hot <= 1) { // so written, NaN fails
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "hot", "is %v, want more than 0 and at most 1: one key's share of all load", hot)
	}
	load, err := rest.load(1 - hot)
	if err != nil {
		return nil, err
	}
	load.keys = append(load.keys, KeyCost{rest.place(0), hot}) // ours: nobody else has seen it
	return steady{newLoad(load.keys, load.spread())}, nil
}

// spread returns what is not the cost of single keys.
func (l *Load) spread() []RangeCost {
	var ranges []RangeCost
	for i, s := range l.steps {
		if r := keysOf(l.steps, i); s.density > 0 {
			ranges = append(ranges, RangeCost{r, s.density * share(r)})
		}
	}
	return ranges
}

// Diurnal is a workload over a day, for keys whose order means something, such
// as where on earth their users live. It is evening somewhere at any time: keys
// there cost up to 1+Swell times the usual, those on the other side as much
// less, and the place goes round once a day. The total rises and falls by Tide.
type Diurnal struct {
	Zipf  Zipf
	Day   int     // in periods, at least 2
	Swell float64 // 0 to 1
	Tide  float64 // 0 to less than 1
}

// waveSteps is how finely the wave is drawn. Neighbours differ by less than
// 1 % of the mean.
const waveSteps = 1024

// Workload returns the workload that d describes.
func (d Diurnal) Workload() (Workload, error) {
	const op = "diurnal workload"
	if d.Day < 2 {
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "day", "is %d periods long, want at least 2", d.Day)
	}
	if !(d.Swell >= 0 && d.Swell <= 1 && d.Tide >= 0 && d.Tide < 1) { // so written, NaN fails
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "", "swell is %v and tide %v, want 0 to 1 for both, and a tide below 1", d.Swell, d.Tide)
	}
	base, err := d.Zipf.load(1)
	if err != nil {
		return nil, err
	}
	return diurnal{d, base}, nil
}

type diurnal struct {
	Diurnal
	base *Load
}

// At makes the load of a period, in time for each key of the base.
func (d diurnal) At(period int) *Load {
	hour := float64(period%d.Day) / float64(d.Day)
	tide := 1 + d.Tide*math.Sin(2*math.Pi*hour)
	var wave [waveSteps]float64
	ranges := make([]RangeCost, waveSteps)
	for i := range wave {
		wave[i] = tide * (1 + d.Swell*math.Cos(2*math.Pi*(float64(i)/waveSteps-hour)))
		ranges[i].Range = leasehold.Range{Start: waveStart(i), Limit: waveStart(i + 1)}
	}
	base := cursor{load: &Load{steps: d.base.steps}}
	for i := range ranges {
		ranges[i].Cost = wave[i] * base.to(ranges[i].Range.Limit)
	}
	keys := make([]KeyCost, len(d.base.keys))
	for i, k := range d.base.keys {
		keys[i] = KeyCost{k.Key, k.Cost * wave[uint64(k.Key)/(spaceSize/waveSteps)]}
	}
	return newLoad(keys, ranges)
}

// waveStart is where a step of the wave starts; behind the last it is 0, the
// end of the key space.
func waveStart(i int) leasehold.Key {
	return leasehold.Key(uint64(i%waveSteps) * (spaceSize / waveSteps))
}
