package explorer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A State is the state of the whole group. It is immutable: a step creates a new one.
type State[S any] interface {
	// Hash identifies the state, except for the budget of faults.
	Hash() uint64
	// Budget is a hash of that budget.
	Budget() uint64
	// Broken returns the violated invariant, nil if there is none.
	Broken() *Violation
	// Each visits every successor, with a description of its step. The step without a fault is the first, and
	// the order is deterministic.
	Each(visit func(next S, what func() string))
	// Line describes the state and the step that led to it.
	Line(step string) string
	// Figure returns the state's part of a figure of the report.
	Figure(i int) uint64
}

// A Scenario is the initial state of an exploration, and its limits.
type Scenario[S any] interface {
	Name() string
	Steps() int // maximum length of a path
	Figures() []Figure
	Begin() (S, error)
	// Worker returns a function that prepares a state for use by one worker, after another one has created
	// it.
	Worker() func(S) S
}

// A Figure is a number in a report that is specific to a protocol.
type Figure struct {
	Key  string // JSON key
	Text string // format
	Of   Sum
	N    uint64
}

// A Sum is the aggregation of a figure.
type Sum uint8

// The sums.
const (
	HighestOfStates Sum = iota
	SumOfStates         // of distinct states
	SumOfSteps
)

// Unlimited is the number of detours for all interleavings. There are so many that the paths are short; a few
// detours allow longer paths.
const Unlimited int8 = -1

// A Report is the result of an exploration.
type Report struct {
	Scenario string
	Depth    int    // limit of the steps
	Deepest  int    // length of the longest path
	States   uint64 // distinct
	Steps    uint64 // explored
	Figures  []Figure
	Elapsed  time.Duration
	Violated *Violation // nil if there was none
}

// A Violation is a violated invariant, and the path to it.
type Violation struct {
	Invariant string
	Text      string
	Path      []string // one line for each step
	Replay    string   // the argument of [Replay]
}

func (v *Violation) String() string { return fmt.Sprintf("%s violated: %s", v.Invariant, v.Text) }

func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, depth %d of %d: %d states, %d steps", r.Scenario, r.Deepest, r.Depth, r.States, r.Steps)
	for _, f := range r.Figures {
		fmt.Fprintf(&b, ", "+f.Text, f.N)
	}
	return b.String()
}

// Figure returns a figure by its key, which must exist.
func (r *Report) Figure(key string) uint64 {
	return r.Figures[slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Key == key })].N
}

// Options of an exploration; they only affect the speed.
type Options struct {
	Workers  int           // default: number of processors
	Progress func(*Report) // called once per second; may be nil
}

type item[S any] struct {
	state S
	trail *trail
	depth int
}

type search[S State[S]] struct {
	scenario Scenario[S]
	limit    int
	figures  []Figure
	start    time.Time
	work     *frontier[item[S]]
	seen     fingerprints // remaining steps, by state and budget
	states   fingerprints // by state alone

	steps, deepest atomic.Uint64
	sums           []atomic.Uint64       // by figure
	found          atomic.Pointer[trail] // to the first violation
}

// Explore explores all behaviour of a scenario. It ends at the first violation, or when ctx ends.
func Explore[S State[S]](ctx context.Context, s Scenario[S], o Options) (*Report, error) {
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	root, err := s.Begin()
	if err != nil {
		return nil, err
	}
	x := &search[S]{scenario: s, limit: s.Steps(), figures: s.Figures(), start: time.Now(), work: newFrontier(item[S]{state: root})}
	x.sums = make([]atomic.Uint64, len(x.figures))
	defer context.AfterFunc(ctx, x.work.close)()
	var wg sync.WaitGroup
	for range o.Workers {
		wg.Go(func() { x.run(s.Worker()) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	x.watch(o, done)
	r := x.report()
	if found := x.found.Load(); found != nil {
		if r.Violated, err = Replay(s, found.text()); err != nil {
			return nil, err
		}
	}
	return r, ctx.Err()
}

func (x *search[S]) watch(o Options, done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if o.Progress != nil {
				o.Progress(x.report())
			}
		}
	}
}

func (x *search[S]) report() *Report {
	r := &Report{
		Scenario: x.scenario.Name(), Depth: x.limit, Deepest: int(x.deepest.Load()), States: x.states.len(),
		Steps: x.steps.Load(), Elapsed: time.Since(x.start), Figures: slices.Clone(x.figures),
	}
	for i := range x.sums {
		r.Figures[i].N = x.sums[i].Load()
	}
	return r
}

func (x *search[S]) run(prepare func(S) S) {
	var next []item[S]
	for {
		it, ok := x.work.take()
		if !ok {
			return
		}
		it.state = prepare(it.state)
		next = x.visit(it, next[:0])
		x.work.put(next)
		clear(next)
	}
}

// visit checks a state, and appends its successors to a list, the one without a fault last. It does nothing
// if the state was explored before with as many remaining steps.
func (x *search[S]) visit(it item[S], next []item[S]) []item[S] {
	key := it.state.Hash()
	if _, raised := x.seen.raise(mixed(key, it.state.Budget()), uint8(x.limit-it.depth)); !raised {
		return next
	}
	if known, _ := x.states.raise(key, 0); !known {
		raise(&x.deepest, uint64(it.depth))
		x.count(it.state, false)
	}
	if it.state.Broken() != nil {
		x.found.CompareAndSwap(nil, it.trail)
		x.work.close()
		return next
	}
	if it.depth == x.limit {
		return next
	}
	it.state.Each(func(n S, _ func() string) {
		next = append(next, item[S]{n, &trail{it.trail, uint16(len(next))}, it.depth + 1})
		x.count(n, true)
	})
	x.steps.Add(uint64(len(next)))
	slices.Reverse(next)
	return next
}

// count adds a step, or a state, to the figures.
func (x *search[S]) count(state S, step bool) {
	for i := range x.figures {
		of := x.figures[i].Of
		if step != (of == SumOfSteps) {
			continue
		}
		switch n := state.Figure(i); {
		case of == HighestOfStates:
			raise(&x.sums[i], n)
		case n > 0:
			x.sums[i].Add(n)
		}
	}
}

func raise(a *atomic.Uint64, to uint64) {
	for {
		is := a.Load()
		if is >= to || a.CompareAndSwap(is, to) {
			return
		}
	}
}

// mixed returns a hash of two numbers.
func mixed(a, b uint64) uint64 {
	h := (a ^ b*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

// An Exploration is a scenario of any protocol.
type Exploration interface {
	Name() string
	Explore(ctx context.Context, o Options) (*Report, error)
	Replay(path string) (*Violation, error)
}

type exploration[S State[S]] struct{ Scenario[S] }

func (e exploration[S]) Explore(ctx context.Context, o Options) (*Report, error) {
	return Explore(ctx, e.Scenario, o)
}

func (e exploration[S]) Replay(path string) (*Violation, error) { return Replay(e.Scenario, path) }

// Explorations returns scenarios as explorations.
func Explorations[C Scenario[S], S State[S]](all []C) []Exploration {
	var out []Exploration
	for _, c := range all {
		out = append(out, exploration[S]{c})
	}
	return out
}

// Find returns the scenario with a name.
func Find[E interface{ Name() string }](all []E, name string) (E, error) {
	i := slices.IndexFunc(all, func(e E) bool { return e.Name() == name })
	if i < 0 {
		var names []string
		for _, e := range all {
			names = append(names, e.Name())
		}
		var none E
		return none, fmt.Errorf("there is no scenario %q: use one of %q", name, names)
	}
	return all[i], nil
}

type constant struct{}

func (constant) Uint64() uint64 { return 0x9e3779b97f4a7c15 }

// Constant returns a source that always returns the same number, so that random delays are constant.
func Constant() *rand.Rand { return rand.New(constant{}) }
