// Package registers is what a server of values promises, as a model for the checker of
// histories: registers that are asked one request at a time, and that are empty again
// when they are lost.
package registers

import "github.com/anishathalye/porcupine"

// What is asked of a register, and what happens to it.
const (
	Read  = iota
	Write // sets it
	Swap  // sets it if the value is as expected
	Lose  // it is empty
)

// A Request is what somebody wants of a register.
type Request struct {
	Do          int
	Name        string
	Value, Want string // to be set, and to be there for a Swap
}

// An Answer is what the server has said.
type Answer struct {
	Value   string // what was read
	Swapped bool
	Unknown bool // whether it has happened nobody knows; it may happen at any time
}

// Model returns the model. Registers begin as "".
func Model() porcupine.Model {
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

// byName tells registers apart: they have nothing to do with each other, and small
// histories are checked sooner.
func byName(history []porcupine.Operation) [][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, o := range history {
		name := o.Input.(Request).Name
		parts[name] = append(parts[name], o)
	}
	var out [][]porcupine.Operation
	for _, part := range parts {
		out = append(out, part)
	}
	return out
}
