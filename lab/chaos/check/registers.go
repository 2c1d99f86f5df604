package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// A register has the calls of one register. It must be linearizable under each generation, and no older
// generation may answer after a newer one: that follows from I1 and I3.
//
// No state moves, so it begins empty under each generation: each has a history of its own.
type register struct {
	name    string
	calls   map[leasehold.Generation][]call // answered, of histories that are not judged yet
	unknown map[string]call                 // writes with an unknown outcome, by value

	// The latest generation of the judged histories, and the time of its first answer.
	latest leasehold.Generation
	since  oracle.Time

	disordered bool // an older generation has answered after a newer one
}

// A tenancy is the history of a register under one generation.
type tenancy struct {
	name       string
	generation leasehold.Generation
	calls      []call
	unknown    []call
}

func (b *Book) register(name string) *register {
	r, ok := b.registers[name]
	if !ok {
		r = &register{name: name, calls: make(map[leasehold.Generation][]call), unknown: make(map[string]call)}
		b.registers[name] = r
	}
	return r
}

// observe adds a call. An answered write has two records.
func (r *register) observe(k call, n *Counts) {
	if k.Generation == 0 {
		r.unknown[k.Value] = k
		return
	}
	if k.Write {
		delete(r.unknown, k.Value)
	}
	n.Calls++
	r.calls[k.Generation] = append(r.calls[k.Generation], k)
}

// lingers is the time for which a request may be in flight after its caller has timed out.
const lingers = oracle.Time(time.Minute)

// ripe removes the histories that were complete at a time: the register has answered under a later generation.
func (b *Book) ripe(before oracle.Time) (found []tenancy) {
	for _, r := range b.registers {
		if len(r.calls) == 0 {
			continue
		}
		b.judgeOrder(r)
		newest := slices.Max(slices.Collect(maps.Keys(r.calls)))
		open := before // start of the oldest incomplete history
		var over []tenancy
		for g, calls := range r.calls {
			last := slices.MaxFunc(calls, func(x, y call) int { return cmp.Compare(x.over, y.over) })
			if last.over < before && (g < newest || before == forever) {
				over = append(over, tenancy{name: r.name, generation: g, calls: calls})
				continue
			}
			first := slices.MinFunc(calls, func(x, y call) int { return cmp.Compare(x.Began, y.Began) })
			open = min(open, first.Began)
		}
		for i := range over {
			over[i].unknown = slices.Collect(maps.Values(r.unknown))
			r.close(&over[i])
		}
		found = append(found, over...)
		maps.DeleteFunc(r.unknown, func(_ string, k call) bool { return k.Began < open-lingers })
	}
	return found
}

func (r *register) close(t *tenancy) {
	delete(r.calls, t.generation)
	if t.generation > r.latest {
		first := slices.MinFunc(t.calls, func(x, y call) int { return cmp.Compare(x.over, y.over) })
		r.latest, r.since = t.generation, first.over
	}
}

func (b *Book) judgeTenancy(t *tenancy, verdict porcupine.CheckResult) {
	b.n.Histories++
	switch verdict {
	case porcupine.Ok:
	case porcupine.Unknown:
		b.n.Undecided++
	case porcupine.Illegal:
		b.add("I1", "a register is not linearizable", "the history of register %s under generation %d is not linearizable", t.name, t.generation)
	}
}

// checkPatience is the timeout of the check of a history, which is then undecided.
const checkPatience = 10 * time.Second

// check checks the history of one generation. A write without an answer was executed if its value, which
// is unique, was read; otherwise it does not matter.
func (t *tenancy) check() porcupine.CheckResult {
	read := make(map[string]bool)
	var all []porcupine.Operation
	for _, k := range t.calls {
		in, out := oracle.Request{Do: oracle.Write, Name: k.Name, Value: k.Value}, oracle.Answer{}
		if !k.Write {
			read[k.Value] = true
			in, out = oracle.Request{Do: oracle.Read, Name: k.Name}, oracle.Answer{Value: k.Value}
		}
		all = append(all, porcupine.Operation{ClientId: k.Client, Input: in, Output: out, Call: int64(k.Began), Return: int64(k.over)})
	}
	const never = 1 << 62
	for _, k := range t.unknown {
		if read[k.Value] {
			all = append(all, porcupine.Operation{
				ClientId: k.Client, Call: int64(k.Began), Return: never,
				Input: oracle.Request{Do: oracle.Write, Name: k.Name, Value: k.Value}, Output: oracle.Answer{Unknown: true},
			})
		}
	}
	return porcupine.CheckOperationsTimeout(oracle.RegisterModel(), all, checkPatience)
}

// judgeOrder finds a request that an older generation answered after a newer one had answered.
func (b *Book) judgeOrder(r *register) {
	if r.disordered {
		return // counted already
	}
	calls := slices.Concat(slices.Collect(maps.Values(r.calls))...)
	began := slices.SortedFunc(slices.Values(calls), func(x, y call) int { return cmp.Compare(x.Began, y.Began) })
	over := slices.SortedFunc(slices.Values(calls), func(x, y call) int { return cmp.Compare(x.over, y.over) })
	var latest leasehold.Generation // answered
	var at oracle.Time
	for _, k := range began {
		if r.since < k.Began && r.latest > latest {
			latest, at = r.latest, r.since
		}
		for len(over) > 0 && over[0].over < k.Began {
			if over[0].Generation > latest {
				latest, at = over[0].Generation, over[0].over
			}
			over = over[1:]
		}
		if k.Generation < latest {
			b.add("I1", "an older generation answered after a newer one", "register %s received a request at %d and answered under generation %d, although it had answered under %d at %d",
				r.name, k.Began, k.Generation, latest, at)
			r.disordered = true
			return
		}
	}
}
