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
	Value   string // the read value
	Swapped bool
	Unknown bool // no reply: it may be executed later, or never
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

// byName partitions a history by registers, which are independent. Short histories are checked faster.
func byName(history []porcupine.Operation) [][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, o := range history {
		name := o.Input.(Request).Name
		parts[name] = append(parts[name], o)
	}
	return slices.Collect(maps.Values(parts))
}

// Registers is a history of requests to registers and of their losses. It is safe for concurrent use.
type Registers struct {
	names []string
	begun time.Time

	mu    sync.Mutex
	fault int64 // start of the last fault
	all   []porcupine.Operation
}

// NewRegisters returns an empty history of registers.
func NewRegisters(names ...string) *Registers {
	return &Registers{names: names, begun: time.Now()}
}

// History returns the operations so far.
func (r *Registers) History() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// Fault records the start of a fault that may lose registers.
func (r *Registers) Fault() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = r.now()
}

func (r *Registers) now() int64 { return time.Since(r.begun).Nanoseconds() }

// Lost records the loss of registers at some time since the start of the last fault.
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

// Never is the return time of an operation with an unknown outcome.
const Never = 1 << 62

// Ask sends random requests and records the replies. After [leasehold.ErrIndeterminate] the request may
// have been executed, after any other error it was not. The function may change the request to the executed
// part: a swap that failed after its read is a read.
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
