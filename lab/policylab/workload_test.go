package policylab

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// harmonic sums all 1/r^alpha.
func harmonic(alpha float64, keys int) float64 {
	sum := 0.0
	for r := keys; r >= 1; r-- {
		sum += math.Pow(float64(r), -alpha)
	}
	return sum
}

// TestZipf compares with a sum over all ranks, below and above the number of keys with a position.
func TestZipf(t *testing.T) {
	for _, test := range []struct {
		alpha float64
		keys  int
	}{{0.8, 1}, {1.5, 1000}, {0, 1000}, {0.8, 3 * realKeys}, {1, 2 * realKeys}} {
		w, err := Zipf{Alpha: test.alpha, Keys: float64(test.keys), Seed: 3}.Workload()
		if err != nil {
			t.Fatal(err)
		}
		load := w.At(0)
		if want := 1 / harmonic(test.alpha, test.keys); !near(load.Total(), 1) || !near(load.Hottest()/want, 1) {
			t.Errorf("%+v: total %v, hottest %v, want %v", test, load.Total(), load.Hottest(), want)
		}
		if got := len(load.keys); got != min(test.keys, realKeys) {
			t.Errorf("%+v: %d keys have a place", test, got)
		}
	}
}

// TestZipfOfABillion checks the numbers in the documentation.
func TestZipfOfABillion(t *testing.T) {
	load, err := Zipf{Alpha: DefaultAlpha, Keys: DefaultKeys}.load(1)
	if err != nil {
		t.Fatal(err)
	}
	if got := math.Round(1 / load.Hottest()); got != 311 {
		t.Errorf("the hottest key has 1/%v of everything, want 1/311", got)
	}
}

func TestInvalidZipfIsRejected(t *testing.T) {
	for _, z := range []Zipf{
		{math.NaN(), 10, 1},
		{-1, 10, 1},
		{math.Inf(1), 10, 1},
		{11, 10, 1},
		{1, 0, 1},
		{1, 0.5, 1},
		{1, math.NaN(), 1},
		{1, math.Inf(1), 1},
		{1, 1e19, 1},
	} {
		if _, err := z.Workload(); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v: %v", z, err)
		}
	}
}

func TestHot(t *testing.T) {
	for _, alpha := range []float64{0, 0.8} {
		w, err := Hot(0.3, Zipf{Alpha: alpha, Keys: 1e9, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if load := w.At(5); !near(load.Hottest(), 0.3) || !near(load.Total(), 1) {
			t.Errorf("alpha %v: hottest %v of %v", alpha, load.Hottest(), load.Total())
		}
	}
	for _, hot := range []float64{0, -1, 1.1, math.NaN()} {
		if _, err := Hot(hot, Zipf{Keys: 1}); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("hot %v: %v", hot, err)
		}
	}
}

// TestDiurnal: the total changes with the tide, and the evening moves round the key space once a day.
func TestDiurnal(t *testing.T) {
	w, err := Diurnal{Zipf: Zipf{Alpha: 0, Keys: 1e9}, Day: 4, Swell: 0.5, Tide: 0.25}.Workload()
	if err != nil {
		t.Fatal(err)
	}
	for period, tide := range []float64{1, 1.25, 1, 0.75, 1, 1.25} {
		load := w.At(period)
		if !near(load.Total(), tide) {
			t.Errorf("period %d: total %v, want %v", period, load.Total(), tide)
		}
		c := cursor{load: load}
		best, evening := 0.0, 0
		for i := range 8 {
			if cost := c.to(leasehold.Key(uint64(i+1) % 8 * (1 << 61))); cost > best {
				best, evening = cost, i
			}
		}
		// The evening of period p is at p/4 of the key space: on the border of
		// two eighths.
		if at := 2 * (period % 4); evening != at && evening != (at+7)%8 {
			t.Errorf("period %d: the evening is in eighth %d", period, evening)
		}
	}
	for _, d := range []Diurnal{{Day: 1}, {Day: 2, Swell: 2}, {Day: 2, Tide: 1}, {Day: 2, Tide: math.NaN()}, {Day: 2}} {
		if _, err := d.Workload(); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%+v: %v", d, err)
		}
	}
}

func TestPoisson(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, mean := range []float64{0, -1, 0.1, 3, 15.9, 16, 400} {
		const n = 20_000
		sum, squares := 0.0, 0.0
		for range n {
			x := poisson(rng, mean)
			if x < 0 || x != math.Trunc(x) {
				t.Fatalf("mean %v: drew %v", mean, x)
			}
			sum += x
			squares += x * x
		}
		want := max(0, mean)
		m := sum / n
		variance := squares/n - m*m
		if math.Abs(m-want) > 5*math.Sqrt(want/n) || math.Abs(variance-want) > 0.1*want {
			t.Errorf("mean %v: got %v, variance %v", mean, m, variance)
		}
	}
}
