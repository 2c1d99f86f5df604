package leasemap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
)

// What clients ask of a register, and what the nemesis does to it.
const (
	opRead = iota
	opWrite
	opSwap // writes if the value is as expected
	opLose // the server died
)

type asked struct {
	what        int
	name        string
	value, want string
}

type answered struct {
	value   string
	swapped bool
	unknown bool // whether it has happened nobody knows
}

// registers are values that begin as "", and are "" again when they are lost.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byName := make(map[string][]porcupine.Operation)
		for _, o := range history {
			name := o.Input.(asked).name
			byName[name] = append(byName[name], o)
		}
		var out [][]porcupine.Operation
		for _, part := range byName {
			out = append(out, part)
		}
		return out
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		in, out := input.(asked), output.(answered)
		switch in.what {
		case opRead:
			return out.value == state.(string), state
		case opWrite:
			return true, in.value
		case opSwap:
			if in.want != state.(string) {
				return out.unknown || !out.swapped, state
			}
			return out.unknown || out.swapped, in.value
		}
		return true, ""
	},
	Equal: func(a, b any) bool { return a == b },
}

// Histories of clients, and of leases that move on and are lost, are those of registers
// that are asked one request at a time.
func TestLinearizable(t *testing.T) {
	const histories = 600
	read, swapped, unknown, lost := 0, 0, 0, 0
	for seed := range uint64(histories) {
		history := play(t, seed)
		for _, o := range history {
			switch out := o.Output.(answered); {
			case out.unknown:
				unknown++
			case out.swapped:
				swapped++
			case o.Input.(asked).what == opLose:
				lost++
			case out.value != "":
				read++
			}
		}
		if result := porcupine.CheckOperationsTimeout(registers, history, 20*time.Second); result != porcupine.Ok {
			t.Fatalf("seed %d: %v: %+v", seed, result, history)
		}
	}
	t.Logf("%d histories: %d reads found a value, %d swaps succeeded, of %d changes nobody knows, %d values were lost", histories, read, swapped, unknown, lost)
	if read < histories || swapped < histories || unknown == 0 || lost < histories {
		t.Error("that proves little")
	}
}

// play has three clients use two names while the lease moves.
func play(t *testing.T, seed uint64) []porcupine.Operation {
	const clients, each = 3, 12
	r := newRealm(t, 3, Config[string]{})
	begun := time.Now()
	now := func() int64 { return time.Since(begun).Nanoseconds() }
	var mu sync.Mutex
	var history []porcupine.Operation
	add := func(o porcupine.Operation) {
		mu.Lock()
		defer mu.Unlock()
		history = append(history, o)
	}
	var all sync.WaitGroup
	for c := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(c)))
		all.Go(func() {
			for i := range each {
				in := asked{what: random.IntN(3), name: fmt.Sprint(random.IntN(2)), value: fmt.Sprintf("%d.%d", c, i)}
				call := now()
				out, done := request(t.Context(), r, random, &in)
				if !done {
					continue
				}
				end := now()
				if out.unknown {
					end = 1 << 62
				}
				add(porcupine.Operation{ClientId: c, Input: in, Call: call, Output: out, Return: end})
			}
		})
	}
	all.Go(func() {
		random := rand.New(rand.NewPCG(seed, 99))
		for range 6 {
			to := (r.owner().number + 1 + random.IntN(2)) % 3
			call := now()
			if random.IntN(3) > 0 {
				if err := r.move(t.Context(), to, nil); err != nil {
					t.Error(err)
				}
				continue
			}
			r.grant(to, nil)
			for name := range 2 {
				add(porcupine.Operation{ClientId: clients, Input: asked{what: opLose, name: fmt.Sprint(name)}, Call: call, Output: answered{}, Return: now()})
			}
		}
	})
	all.Wait()
	return history
}

// request asks whoever owns the name, for a while. It reports false if nobody has carried
// it out.
func request(ctx context.Context, r *realm, random *rand.Rand, in *asked) (answered, bool) {
	for range 100 {
		s := r.owner()
		if random.IntN(4) == 0 {
			s = r.servers[random.IntN(3)] // a caller that is behind
		}
		out, err := attempt(ctx, s, in)
		switch leasehold.KindOf(err) {
		case leasehold.NotOwner:
			continue
		case leasehold.Unavailable:
			return answered{unknown: true}, true
		}
		return out, true
	}
	return answered{}, false
}

func attempt(ctx context.Context, s *server, in *asked) (answered, error) {
	switch in.what {
	case opRead:
		value, _, err := s.Get(in.name)
		return answered{value: value}, err
	case opWrite:
		_, err := s.Set(ctx, in.name, in.value)
		return answered{}, err
	}
	value, version, err := s.Get(in.name)
	if err != nil {
		return answered{}, err
	}
	in.want = value
	_, err = s.Set(ctx, in.name, in.value, If(version))
	if leasehold.KindOf(err) == leasehold.Stale {
		return answered{}, nil
	}
	return answered{swapped: true}, err
}
