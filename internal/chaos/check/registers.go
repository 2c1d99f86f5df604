package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/registers"
	"github.com/leasehold-dev/leasehold/internal/witness"
)

// A tenancy is a register under one generation. It begins empty, because no state is
// moved, and is asked one request at a time for as long as it lasts.
type tenancy struct {
	name       string
	generation leasehold.Generation
}

// judgeRegisters sees to it that registers are linearizable: that each is under each
// generation, and that nothing is answered under a generation once something was
// answered under a later one. It is what a service gets out of I1 and I3.
func (b *Book) judgeRegisters(n *Counts) {
	parts, unknown := b.tenancies(n)
	byName := make(map[string][]call)
	for t, calls := range parts {
		byName[t.name] = append(byName[t.name], calls...)
		n.Histories++
		if !linearizable(calls, unknown[t.name]) {
			b.add("I1", "a register is not linearizable", "what register %s has answered under generation %d is not linearizable", t.name, t.generation)
		}
	}
	for name, calls := range byName {
		b.judgeOrder(name, calls)
	}
}

// tenancies sorts calls by what was answered under which generation, and by register
// the writes of which nobody knows whether they were done.
func (b *Book) tenancies(n *Counts) (map[tenancy][]call, map[string][]call) {
	parts, unknown := make(map[tenancy][]call), make(map[string][]call)
	for _, c := range b.callers {
		answered := make(map[string]bool)
		for _, k := range c.calls {
			if k.Write && k.Generation != 0 {
				answered[k.Value] = true
			}
		}
		for _, k := range c.calls {
			if k.Generation == 0 {
				if !answered[k.Value] {
					unknown[k.Name] = append(unknown[k.Name], k)
				}
				continue
			}
			n.Calls++
			t := tenancy{k.Name, k.Generation}
			parts[t] = append(parts[t], k)
		}
	}
	return parts, unknown
}

// checkPatience is how long a history may take to be checked. One that takes longer is
// not known to be wrong.
const checkPatience = 10 * time.Second

// linearizable checks what was answered under one generation. A write of which nobody
// knows whether it was done has been done if its value, which no other has, was read;
// otherwise it does not matter.
func linearizable(calls, unknown []call) bool {
	read := make(map[string]bool)
	var all []porcupine.Operation
	for _, k := range calls {
		in, out := registers.Request{Do: registers.Write, Name: k.Name, Value: k.Value}, registers.Answer{}
		if !k.Write {
			read[k.Value] = true
			in, out = registers.Request{Do: registers.Read, Name: k.Name}, registers.Answer{Value: k.Value}
		}
		all = append(all, porcupine.Operation{ClientId: k.Client, Input: in, Output: out, Call: int64(k.Began), Return: int64(k.over)})
	}
	const never = 1 << 62
	for _, k := range unknown {
		if read[k.Value] {
			all = append(all, porcupine.Operation{
				ClientId: k.Client, Call: int64(k.Began), Return: never,
				Input: registers.Request{Do: registers.Write, Name: k.Name, Value: k.Value}, Output: registers.Answer{Unknown: true},
			})
		}
	}
	return porcupine.CheckOperationsTimeout(registers.Model(), all, checkPatience) != porcupine.Illegal
}

// judgeOrder looks for an answer under a generation to a request that was made after
// another had been answered under a later one.
func (b *Book) judgeOrder(name string, calls []call) {
	began := slices.SortedFunc(slices.Values(calls), func(x, y call) int { return cmp.Compare(x.Began, y.Began) })
	over := slices.SortedFunc(slices.Values(calls), func(x, y call) int { return cmp.Compare(x.over, y.over) })
	var latest leasehold.Generation // of what was answered
	var at witness.Time
	for _, k := range began {
		for len(over) > 0 && over[0].over < k.Began {
			if over[0].Generation > latest {
				latest, at = over[0].Generation, over[0].over
			}
			over = over[1:]
		}
		if k.Generation < latest {
			b.add("I1", "an older generation answered after a newer one", "register %s was asked at %d and answered under generation %d, although it had answered under %d at %d",
				name, k.Began, k.Generation, latest, at)
			return
		}
	}
}
