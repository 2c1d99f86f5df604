package explore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Report is what was found.
type Report struct {
	Scenario string
	Depth    int    // steps that were allowed
	Deepest  int    // steps of the longest way
	States   uint64 // that differ, in more than who is who
	Steps    uint64 // that were tried
	Terms    uint64 // the most leaders that there were, one after the other
	Changes  uint64 // the most changes of the table
	// Suspended counts states with a suspended lease, Resumed the steps that resume one, and
	// Refused the steps that end one because the range was granted to another owner.
	Suspended, Resumed, Refused uint64

	Elapsed  time.Duration // how long it took
	Violated *Violation    // nil if there was none
}

// A Violation is an invariant that does not hold, and how to get there.
type Violation struct {
	Invariant string
	Text      string
	Path      []string // one line for each step
	Replay    string   // what [Replay] wants
}

func (v *Violation) String() string { return fmt.Sprintf("%s violated: %s", v.Invariant, v.Text) }

func (r *Report) String() string {
	return fmt.Sprintf("%s, depth %d of %d: %d states, %d steps, up to %d leaders and %d changes, %d states with suspended leases, %d resumed, %d refused",
		r.Scenario, r.Deepest, r.Depth, r.States, r.Steps, r.Terms, r.Changes, r.Suspended, r.Resumed, r.Refused)
}

// Options say how to explore; they change only the speed.
type Options struct {
	Workers  int           // at a time; default one for each processor
	Progress func(*Report) // is told now and then how far it is; nil if nobody is
	Every    time.Duration // how often; default 1 s
}

// A trail is how a state was reached: the choice of the last step, and those before.
type trail struct {
	before *trail
	choice uint16
}

// item is a state that is to be explored.
type item struct {
	state *state
	trail *trail
	depth int
}

// An explorer is a search from one state, depth first, by several workers.
type explorer struct {
	scenario *Scenario
	work     *pile
	seen     fingerprints // of states and what may still happen: how many steps were left
	states   fingerprints // of states alone

	steps, deepest, terms, changes atomic.Uint64
	suspended, resumed, refused    atomic.Uint64

	mu    sync.Mutex
	found *trail // to the first violation
}

// Explore tries all that can happen in a scenario. It ends at the first violation,
// or when ctx does.
func Explore(ctx context.Context, s Scenario, o Options) (*Report, error) {
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	start := time.Now()
	root, err := begin(&s, newKit(&s))
	if err != nil {
		return nil, err
	}
	x := &explorer{scenario: &s, work: newPile(o.Workers)}
	x.work.put([]item{{state: root}})
	stop := context.AfterFunc(ctx, x.work.close)
	defer stop()
	var wg sync.WaitGroup
	for range o.Workers {
		wg.Go(func() { x.run(newKit(&s)) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	x.watch(o, start, done)
	r := x.report(start)
	if x.found != nil {
		if r.Violated, err = Replay(s, x.found.text()); err != nil {
			return nil, err
		}
	}
	return r, ctx.Err()
}

// watch tells how far it is until it is done.
func (x *explorer) watch(o Options, start time.Time, done <-chan struct{}) {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if o.Progress != nil {
				o.Progress(x.report(start))
			}
		}
	}
}

func (x *explorer) report(start time.Time) *Report {
	return &Report{
		Scenario: x.scenario.Name(), Depth: x.scenario.Depth, Deepest: int(x.deepest.Load()),
		States: x.states.len(), Steps: x.steps.Load(), Terms: x.terms.Load(), Changes: x.changes.Load(),
		Suspended: x.suspended.Load(), Resumed: x.resumed.Load(), Refused: x.refused.Load(),
		Elapsed: time.Since(start),
	}
}

// run is one worker.
func (x *explorer) run(k *kit) {
	var stack []item
	for {
		if len(stack) == 0 {
			if stack = x.work.take(stack); len(stack) == 0 {
				return
			}
		}
		last := len(stack) - 1
		it := stack[last]
		stack[last] = item{}
		stack = x.visit(it, k, stack[:last])
		stack = x.work.share(stack)
	}
}

// visit looks at a state, and adds those that follow to the stack, unless that was done
// before.
func (x *explorer) visit(it item, k *kit, stack []item) []item {
	st := *it.state
	st.kit = k
	key := st.hash()
	if _, raised := x.seen.raise(mixed(key, st.budget()), uint8(x.scenario.Depth-it.depth)); !raised {
		return stack
	}
	if known, _ := x.states.raise(key, 0); !known {
		raise(&x.deepest, uint64(it.depth))
		raise(&x.terms, uint64(st.store.record.Term))
		raise(&x.changes, uint64(len(st.store.changes)))
		if st.suspendedOwners() > 0 {
			x.suspended.Add(1)
		}
	}
	if st.broken != nil {
		x.violated(it.trail)
		return stack
	}
	if it.depth == x.scenario.Depth {
		return stack
	}
	from, choice := len(stack), uint16(0)
	st.each(func(n *state, _ func() string) {
		stack = append(stack, item{n, &trail{it.trail, choice}, it.depth + 1})
		if n.resumed {
			x.resumed.Add(1)
		}
		if n.refused {
			x.refused.Add(1)
		}
		choice++
	})
	x.steps.Add(uint64(choice))
	slices.Reverse(stack[from:]) // what is usual comes first
	return stack
}

// violated ends the search.
func (x *explorer) violated(t *trail) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.found == nil {
		x.found = t
	}
	x.work.close()
}

func raise(a *atomic.Uint64, to uint64) {
	for {
		is := a.Load()
		if is >= to || a.CompareAndSwap(is, to) {
			return
		}
	}
}

// mixed is a hash of two numbers.
func mixed(a, b uint64) uint64 {
	h := (a ^ b*0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	return h ^ h>>32
}
