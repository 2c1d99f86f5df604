package policylab

import (
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/leasehold-dev/leasehold"
)

// A Workload has the cost of the keys in each period, counted from 0. It is safe for concurrent use, and the
// same period always has the same load.
type Workload interface {
	At(period int) *Load
}

// A Kind describes a kind of workload.
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
		{NameZipf, "few expensive keys and many cheap ones: the key of rank r costs 1/r^alpha"},
		{NameHot, "one key with a given share of all load; the rest is zipf"},
		{NameDiurnal, "zipf, with a wave that moves over the key space and a total that changes with the time of day"},
		{NameRecorded, "loads from a file"},
		{NameUniform, "the same cost for every key"},
	}
}

// steady is a workload that does not change.
type steady struct{ load *Load }

func (s steady) At(int) *Load { return s.load }

// Uniform returns the workload with the same cost for every key.
func Uniform() Workload { return steady{newLoad(nil, []RangeCost{{leasehold.All, 1}})} }

// Hot returns the workload of a zipf distribution with one additional key, whose share of all load is hot, 0
// to 1.
func Hot(hot float64, rest Zipf) (Workload, error) {
	const op = "hot workload"
	if !(hot > 0 && hot <= 1) { // in this form, NaN fails
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "hot", "is %v, want more than 0 and at most 1: one key's share of all load", hot)
	}
	load, err := rest.load(1 - hot)
	if err != nil {
		return nil, err
	}
	load.keys = append(load.keys, KeyCost{rest.place(0), hot}) // not shared yet
	return steady{newLoad(load.keys, load.spread())}, nil
}

// spread returns the cost of ranges, without single keys.
func (l *Load) spread() []RangeCost {
	var ranges []RangeCost
	for i, s := range l.steps {
		if r := keysOf(l.steps, i); s.density > 0 {
			ranges = append(ranges, RangeCost{r, s.density * share(r)})
		}
	}
	return ranges
}

// Diurnal is a workload over a day, for keys with a meaningful order, such as by the longitude of their
// users. It is evening somewhere at any time: keys there cost up to 1+Swell times the usual, those on the
// other side equally less, and the position moves round the key space once a day. The total changes by Tide.
type Diurnal struct {
	Zipf  Zipf
	Day   int     // in periods, at least 2
	Swell float64 // 0 to 1
	Tide  float64 // 0 to less than 1
}

// waveSteps is the resolution of the wave. Adjacent steps differ by less than 1 % of the mean.
const waveSteps = 1024

// Workload returns the workload of d.
func (d Diurnal) Workload() (Workload, error) {
	const op = "diurnal workload"
	if d.Day < 2 {
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "day", "is %d periods long, want at least 2", d.Day)
	}
	if !(d.Swell >= 0 && d.Swell <= 1 && d.Tide >= 0 && d.Tide < 1) { // in this form, NaN fails
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

// At creates the load of a period, in time proportional to the number of keys.
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

// waveStart returns the start of a step of the wave; after the last it is 0, the end of the key space.
func waveStart(i int) leasehold.Key {
	return leasehold.Key(uint64(i%waveSteps) * (spaceSize / waveSteps))
}

// Zipf is the workload of PRS 7.3: of Keys keys, the one of rank r costs 1/r^Alpha, and the total is 1. The
// position of a key is the hash of its name.
//
// The number of keys limits the possible balance: the first key has 1/H of the total, where H is the sum of
// all 1/r^Alpha. See [Sample].Floor, and docs/policies.md for numbers.
//
// Only the first million keys have positions. The others are spread evenly over the key space: with Alpha 0.8
// each costs less than 1/60,000 of the first, and the hash places so many of them in every range that their
// total is almost even.
type Zipf struct {
	Alpha float64 // 0 to MaxAlpha; 0 means that all keys cost the same
	Keys  float64 // 1 to MaxKeys, a whole number
	Seed  uint64  // determines the positions of the keys
}

// Limits and defaults of a Zipf.
const (
	DefaultAlpha = 0.8
	MaxAlpha     = 10
	DefaultKeys  = 1e9
	MaxKeys      = 1e18
)

// realKeys is the number of keys with a position.
const realKeys = 1_000_000

// Workload returns the workload of z.
func (z Zipf) Workload() (Workload, error) {
	load, err := z.load(1)
	if err != nil {
		return nil, err
	}
	return steady{load}, nil
}

// load returns the load of z with a given total.
func (z Zipf) load(total float64) (*Load, error) {
	const op = "zipf workload"
	switch { // in this form, NaN fails
	case !(z.Alpha >= 0 && z.Alpha <= MaxAlpha):
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "alpha", "is %v, want 0 to %d", z.Alpha, MaxAlpha)
	case !(z.Keys >= 1 && z.Keys <= MaxKeys) || z.Keys != math.Trunc(z.Keys):
		return nil, leasehold.Errorf(op, leasehold.ErrInvalid, "keys", "is %v, want a whole number from 1 to %g", z.Keys, float64(MaxKeys))
	}
	keys := make([]KeyCost, z.real())
	sum := 0.0
	for i := len(keys) - 1; i >= 0; i-- { // the small ones first, for precision
		keys[i] = KeyCost{z.place(i + 1), math.Pow(float64(i+1), -z.Alpha)}
		sum += keys[i].Cost
	}
	tail := integral(z.Alpha, float64(len(keys))+0.5, z.Keys+0.5)
	scale := total / (sum + tail)
	for i := range keys {
		keys[i].Cost *= scale
	}
	return newLoad(keys, []RangeCost{{leasehold.All, tail * scale}}), nil
}

// real returns the number of keys with a position. If there are many and all cost the same, none needs one.
func (z Zipf) real() int {
	if z.Alpha == 0 && z.Keys > realKeys {
		return 0
	}
	return int(min(z.Keys, realKeys))
}

// place returns the key of a rank, counted from 1. Rank 0 is a key that is not part of the distribution.
func (z Zipf) place(rank int) leasehold.Key {
	var text [64]byte
	name := append(strconv.AppendUint(text[:0], z.Seed, 10), '/')
	return leasehold.Key(xxhash.Sum64(strconv.AppendInt(name, int64(rank), 10)))
}

// integral returns that of x^-alpha. From half below to half above, it is the sum of the ranks between, with
// an error of 1e-13 beyond the first million.
func integral(alpha, from, to float64) float64 {
	if to <= from {
		return 0
	}
	power, ratio := 1-alpha, math.Log(to/from)
	if power == 0 {
		return ratio
	}
	return math.Pow(from, power) * math.Expm1(power*ratio) / power // also exact if power is near 0
}
