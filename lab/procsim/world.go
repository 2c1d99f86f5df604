package procsim

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/testkit/memnet"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
	"github.com/leasehold-dev/leasehold/lab/chaos/check"
)

// A world is one cluster with its faults. The goroutine of run changes it; callbacks of the libraries only record.
type world struct {
	*plan
	seed     uint64
	random   *rand.Rand // of the faults
	begun    time.Time
	net      *memnet.Net
	db       *database
	memory   *flease.Memory // of a diskless group
	managers []*managerProc
	spaces   []*space
	operator *operator
	agenda   []task
	running  sync.WaitGroup

	group excuses // for all namespaces

	complete bool // the first leases are granted
	// restored is set when the store was restored from a backup.
	restored bool

	mu         sync.Mutex
	trace      io.Writer // nil: none
	hash       uint64
	events     int
	violations []check.Violation
}

// A task is an action of the world at a time.
type task struct {
	at time.Time
	do func()
}

// A Result is the result of one world.
type Result struct {
	Seed       uint64
	Hash       uint64 // of the history: the sum of the hashes of its events with their times
	Events     int
	Faults     []string
	Virtual    time.Duration
	Violations []check.Violation
	Counts     check.Counts
}

// Run runs the world of a seed, and writes a trace unless it is nil. It has only the given kinds of faults, if there are
// any. The caller is in a bubble of synctest.
func Run(seed uint64, only []string, trace io.Writer) *Result {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{plan: draw(r, only), seed: seed, random: r, begun: time.Now(), trace: trace}
	w.net = memnet.New(w.latency)
	delays := rand.New(rand.NewPCG(seed, 2))
	if w.jitter > 0 {
		w.net.Delay = func(string, string) time.Duration { return between(delays, 0, w.jitter) }
	}
	w.db = newDatabase(rand.New(rand.NewPCG(seed, 3)))
	w.logf("plan: diskless %t, TTL %v, latency %v+%v, clocks %+v", w.diskless, w.ttl, w.latency, w.jitter, w.clocks)
	w.open()
	w.live()
	w.settle()
	w.close()
	return w.result()
}

// open starts all processes, and waits until all keys are owned.
func (w *world) open() {
	w.memory = &flease.Memory{}
	for i := range w.ttl {
		w.startManager(w.newManager(i))
	}
	w.operator = newOperator(w)
	for _, p := range w.plan.spaces {
		s := newSpace(w, p)
		w.spaces = append(w.spaces, s)
		w.operator.create(s)
		for range p.owners {
			w.startServer(s.newServer())
		}
		for range p.lookups {
			w.startCaller(s.newCaller())
		}
		if s.client != nil {
			w.spawn(s.client.run)
		}
		w.logf("namespace %s: %+v", s.name, p)
	}
	w.disturb(30 * time.Second) // a diskless group waits for the longest lease, and terms follow
	w.wait(time.Until(w.due()))
	w.complete = true
}

// live injects faults.
func (w *world) live() {
	for end := time.Now().Add(w.duration); time.Now().Before(end); {
		f := w.plan.faults[w.random.IntN(len(w.plan.faults))]
		if what := f.inflict(w); what != "" {
			w.logf("fault %s: %s", f.name, what)
		}
		w.wait(between(w.random, w.pause/8, 2*w.pause))
	}
}

// settle ends all faults, and waits until everything is judged.
func (w *world) settle() {
	for len(w.agenda) > 0 {
		w.wait(max(0, time.Until(w.agenda[0].at)))
	}
	w.logf("faults have ended")
	if w.diskless {
		w.recreate()
		w.disturb(w.longest() + 10*time.Second)
	}
	w.wait(time.Until(w.due()) + 30*time.Second)
	for _, s := range w.spaces {
		s.judgeEnd()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// wait lets virtual time pass, executes tasks when they are due, and samples.
func (w *world) wait(d time.Duration) {
	end := time.Now().Add(d)
	for {
		next := end
		if len(w.agenda) > 0 && w.agenda[0].at.Before(end) {
			next = w.agenda[0].at
		}
		if sample := time.Now().Add(w.tick()); sample.Before(next) {
			next = sample
		}
		time.Sleep(time.Until(next))
		for len(w.agenda) > 0 && !time.Now().Before(w.agenda[0].at) {
			t := w.agenda[0]
			w.agenda = w.agenda[1:]
			t.do()
		}
		for _, s := range w.spaces {
			s.sample(true)
		}
		if !time.Now().Before(end) {
			return
		}
	}
}

// tick is the interval of samples: long while nothing can happen.
func (w *world) tick() time.Duration {
	for _, m := range w.managers {
		if m.alive() {
			return 500 * time.Millisecond
		}
	}
	return 5 * time.Second
}

// after executes a task later.
func (w *world) after(d time.Duration, do func()) {
	t := task{time.Now().Add(d), do}
	i, _ := slices.BinarySearchFunc(w.agenda, t, func(a, b task) int { return cmp.Or(a.at.Compare(b.at), -1) })
	w.agenda = slices.Insert(w.agenda, i, t)
}

// spawn runs a call that may take time.
func (w *world) spawn(do func()) { w.running.Go(do) }

func (w *world) close() {
	for _, s := range w.spaces {
		s.close()
	}
	w.operator.close()
	for _, m := range w.managers {
		w.killManager(m)
	}
	w.running.Wait()
	time.Sleep(2 * time.Minute) // until requests to the store and connections have ended
}

func (w *world) result() *Result {
	r := &Result{Seed: w.seed, Hash: w.hash, Events: w.events, Virtual: time.Since(w.begun), Violations: w.violations}
	for _, f := range w.plan.faults {
		r.Faults = append(r.Faults, f.name)
	}
	for _, s := range w.spaces {
		v, n := s.book.Violations()
		r.Violations = append(r.Violations, v...)
		r.Counts.Tenures += n.Tenures
		r.Counts.Losses += n.Losses
		r.Counts.Tables += n.Tables
	}
	return r
}

// now is the time in a history.
func (w *world) now() oracle.Time { return oracle.Time(time.Since(w.begun)) }

// logf records an event.
func (w *world) logf(format string, args ...any) {
	at := time.Since(w.begun)
	text := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", at, text)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hash += h.Sum64()
	w.events++
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%12v %s\n", at.Truncate(time.Microsecond), text)
	}
}

// violated records a violation; the text is that of the first of a kind.
func (w *world) violated(invariant, broken, format string, args ...any) {
	text := fmt.Sprintf("after %v: ", time.Since(w.begun)) + fmt.Sprintf(format, args...)
	w.mu.Lock()
	i := slices.IndexFunc(w.violations, func(v check.Violation) bool { return v.Invariant == invariant && v.Broken == broken })
	if i >= 0 {
		w.violations[i].Times++
	} else {
		w.violations = append(w.violations, check.Violation{Invariant: invariant, Broken: broken, Text: text, Times: 1})
	}
	w.mu.Unlock()
	if i < 0 {
		w.logf("VIOLATION %s: %s: %s", invariant, broken, text)
	}
}

func (w *world) logger(process string) *slog.Logger {
	if w.trace == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(traceWriter{w}, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).With("process", process)
}

type traceWriter struct{ w *world }

func (t traceWriter) Write(p []byte) (int, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	_, err := fmt.Fprintf(t.w.trace, "%12v      %s", time.Since(t.w.begun).Truncate(time.Microsecond), p)
	return len(p), err
}

// ended is a context for calls that must not wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
