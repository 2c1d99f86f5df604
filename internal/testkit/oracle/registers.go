package oracle

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
)

// The operations on a register.
const (
	Read  = iota
	Write // sets it
	Swap  // sets it if the value is as expected
	Lose  // empties it
)

// A Request is an operation on a register.
type Request struct {
	Do          int
	Name        string
	Value, Want string // the new value, and the expected one of a Swap
}

// An Answer is the result of an operation.
type Answer struct {
	Value   string // that was read
	Swapped bool
	Unknown bool // there was no answer: it may happen at any time, or never
}

// RegisterModel is a model of registers that execute one request at a time. They begin as "" and are
// empty again when they are lost.
func RegisterModel() porcupine.Model {
	return porcupine.Model{
		Partition: byName,
		Init:      func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(Request), output.(Answer)
			switch in.Do {
			case Read:
				return out.Unknown || out.Value == state.(string), state
			case Write:
				return true, in.Value
			case Swap:
				if in.Want != state.(string) {
					return out.Unknown || !out.Swapped, state
				}
				return out.Unknown || out.Swapped, in.Value
			}
			return true, ""
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

// byName splits a history by registers: they are independent, and short histories are checked
// sooner.
func byName(history []porcupine.Operation) [][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, o := range history {
		name := o.Input.(Request).Name
		parts[name] = append(parts[name], o)
	}
	return slices.Collect(maps.Values(parts))
}

// Registers is a history of requests about registers, and of their losses. It may be
// written by many goroutines at once.
type Registers struct {
	names []string
	begun time.Time

	mu    sync.Mutex
	fault int64 // when the last fault began
	all   []porcupine.Operation
}

// NewRegisters begins a history of registers with these names.
func NewRegisters(names ...string) *Registers {
	return &Registers{names: names, begun: time.Now()}
}

// History returns what has happened.
func (r *Registers) History() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// Fault notes that a fault begins that may lose registers.
func (r *Registers) Fault() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = r.now()
}

func (r *Registers) now() int64 { return time.Since(r.begun).Nanoseconds() }

// Lost notes that registers were lost, at some time since the last fault began.
func (r *Registers) Lost(loss leasehold.Loss) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range r.names {
		if loss.Range.Contains(leasehold.KeyOf(name)) {
			r.all = append(r.all, porcupine.Operation{
				ClientId: -1, Call: r.fault, Return: r.now(), Input: Request{Do: Lose, Name: name}, Output: Answer{},
			})
		}
	}
}

// Never is when an operation returns whose outcome is unknown.
const Never = 1 << 62

// Ask sends random requests and notes the answers. An error [leasehold.ErrIndeterminate] says that the
// request may have been executed, any other that it was not. The function may change the
// request to what it has tried: a swap that got no further than its read is a read.
func (r *Registers) Ask(client, times int, every time.Duration, random *rand.Rand, request func(*Request) (Answer, error)) {
	for i := range times {
		time.Sleep(time.Duration(random.Int64N(int64(2 * every))))
		in := Request{Do: random.IntN(3), Name: r.names[random.IntN(len(r.names))], Value: fmt.Sprintf("%d.%d", client, i)}
		call := r.now()
		out, err := request(&in)
		o := porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: r.now()}
		switch {
		case errors.Is(err, leasehold.ErrIndeterminate) && in.Do != Read:
			o.Output, o.Return = Answer{Unknown: true}, Never
		case err != nil:
			continue
		}
		r.mu.Lock()
		r.all = append(r.all, o)
		r.mu.Unlock()
	}
}
