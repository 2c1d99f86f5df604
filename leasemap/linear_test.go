package leasemap

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testkit/oracle"
)

// Histories of clients, with leases that move and are lost, are linearizable: registers
// execute one request at a time.
func TestLinearizable(t *testing.T) {
	histories := 600
	if testing.Short() {
		histories = 60
	}
	read, swapped, unknown, lost := 0, 0, 0, 0
	for seed := range uint64(histories) {
		history := play(t, seed, newRealm(t, 3, Config[string]{}), false)
		for _, o := range history {
			switch out := o.Output.(oracle.Answer); {
			case out.Unknown:
				unknown++
			case out.Swapped:
				swapped++
			case o.Input.(oracle.Request).Do == oracle.Lose:
				lost++
			case out.Value != "":
				read++
			}
		}
		if result := porcupine.CheckOperationsTimeout(oracle.RegisterModel(), history, 20*time.Second); result != porcupine.Ok {
			t.Fatalf("seed %d: %v: %+v", seed, result, history)
		}
	}
	t.Logf("%d histories: %d reads found a value, %d swaps succeeded, %d changes are indeterminate, %d values were lost", histories, read, swapped, unknown, lost)
	if read < histories || swapped < histories || unknown == 0 || lost < histories {
		t.Error("the history has too few operations")
	}
}

// With a store that fails in every way, histories are linearizable, and a lost lease loses no value (I9). With
// write-behind that holds for moves.
func TestLinearizableWithStore(t *testing.T) {
	histories := 600
	if testing.Short() {
		histories = 60
	}
	for _, c := range []struct {
		name   string
		behind *WriteBehind
	}{{"write-through", nil}, {"write-behind", &WriteBehind{Interval: 10 * time.Microsecond, Batch: 1, OnLost: new(losses).add}}} {
		t.Run(c.name, func(t *testing.T) {
			read, unknown := 0, 0
			for seed := range uint64(histories) {
				history := playStored(t, seed, c.behind)
				for _, o := range history {
					switch out := o.Output.(oracle.Answer); {
					case out.Unknown:
						unknown++
					case out.Value != "":
						read++
					}
				}
				if result := porcupine.CheckOperationsTimeout(oracle.RegisterModel(), history, 20*time.Second); result != porcupine.Ok {
					t.Fatalf("seed %d: %v: %+v", seed, result, history)
				}
			}
			t.Logf("%d histories: %d reads found a value, %d changes are indeterminate", histories, read, unknown)
			if read < histories || unknown == 0 {
				t.Error("the history has too few operations")
			}
		})
	}
}

// playStored plays with a store. With write-behind the lease is never lost.
func playStored(t *testing.T, seed uint64, behind *WriteBehind) []porcupine.Operation {
	d := newDisk()
	cfg := plain(d)
	cfg.Max, cfg.MaxLoads, cfg.WriteBehind = 3, 2, behind
	r := newRealm(t, 3, cfg)
	var late, savers sync.WaitGroup
	defer late.Wait()
	defer savers.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if behind != nil {
		for _, s := range r.servers {
			savers.Go(func() { s.runSaver(ctx) })
		}
	}
	d.set(func(string) error {
		if rand.IntN(20) == 0 {
			return errLost
		}
		return nil
	}, func(batch []Record) error {
		switch rand.IntN(20) {
		case 0:
			return errLost
		case 1:
			return errDone
		case 2:
			return errKnown
		case 3: // it arrives later
			late.Go(func() {
				for range rand.IntN(100) {
					runtime.Gosched()
				}
				d.write(batch)
			})
			return errLost
		}
		return nil
	})
	return play(t, seed, r, true)
}

// play runs three clients with two names while the lease moves. If its values are stored it is also lost, without a loss of
// values.
func play(t *testing.T, seed uint64, r *realm, stored bool) []porcupine.Operation {
	const clients, each = 3, 12
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
				in := oracle.Request{Do: random.IntN(3), Name: fmt.Sprint(random.IntN(2)), Value: fmt.Sprintf("%d.%d", c, i)}
				call := now()
				out, done := request(t.Context(), r, random, &in)
				if !done {
					continue
				}
				end := now()
				if out.Unknown {
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
			if random.IntN(3) > 0 || r.servers[0].unsaved != nil {
				if err := r.move(t.Context(), to, nil); err != nil {
					t.Error(err)
				}
				continue
			}
			r.grant(to, nil)
			if stored {
				continue
			}
			for name := range 2 {
				add(porcupine.Operation{ClientId: clients, Input: oracle.Request{Do: oracle.Lose, Name: fmt.Sprint(name)}, Call: call, Output: oracle.Answer{}, Return: now()})
			}
		}
	})
	all.Wait()
	return history
}

// request sends a request to the owner of the name, with retries. It reports false if no server has executed
// it out.
func request(ctx context.Context, r *realm, random *rand.Rand, in *oracle.Request) (oracle.Answer, bool) {
	for range 100 {
		s := r.owner()
		if random.IntN(4) == 0 {
			s = r.servers[random.IntN(3)] // a caller with a stale table
		}
		out, err := attempt(ctx, s, in)
		if errors.Is(err, leasehold.ErrNotOwner) || errors.Is(err, leasehold.ErrUnavailable) {
			continue
		}
		if errors.Is(err, leasehold.ErrIndeterminate) {
			return oracle.Answer{Unknown: true}, true
		}
		return out, true
	}
	return oracle.Answer{}, false
}

func attempt(ctx context.Context, s *server, in *oracle.Request) (oracle.Answer, error) {
	switch in.Do {
	case oracle.Read:
		value, _, err := s.Get(in.Name)
		return oracle.Answer{Value: value}, err
	case oracle.Write:
		_, err := s.Set(ctx, in.Name, in.Value)
		return oracle.Answer{}, err
	}
	value, version, err := s.GetVersion(in.Name)
	if err != nil {
		return oracle.Answer{}, err
	}
	in.Want = value
	_, err = s.Set(ctx, in.Name, in.Value, WithVersion(version))
	if leasehold.KindOf(err) == leasehold.ErrStale {
		return oracle.Answer{}, nil
	}
	return oracle.Answer{Swapped: true}, err
}
