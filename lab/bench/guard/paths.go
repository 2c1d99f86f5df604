package main

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lab/bench/loadgen"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// A path is something that happens for every request, renewal or change.
type path struct {
	name string
	// start returns what does it once, and what ends all that was started.
	start func(context.Context) (once func(), stop func(), err error)
}

// paths are those that are guarded.
func paths() []path {
	return []path{
		{"nothing", func(context.Context) (func(), func(), error) { return func() {}, func() {}, nil }},
		{"lookup.Find", startFind},
		{"owner.Check", withOwner(check)},
		{"owner.Held", withOwner(held)},
		{"leasemap.Map.Get", withOwner(mapGet)},
		{"leasemap.Map.Update", withOwner(mapUpdate)},
		{"manager machine: a renewal of 64 leases", pure(renewal)},
		{"lookup machine: a change applied", pure(apply)},
		{"wire: a renewal encoded", pure(encodeRenewal)},
		{"wire: a renewal decoded", pure(decodeRenewal)},
		{"wire: 8 changes encoded", pure(encodeUpdate)},
		{"wire: 8 changes decoded", pure(decodeUpdate)},
	}
}

func pathNamed(name string) (path, error) {
	for _, p := range paths() {
		if p.name == name {
			return p, nil
		}
	}
	return path{}, fmt.Errorf("there is no path %q", name)
}

// pure is a path that has nothing to end.
func pure(start func() (func(), error)) func(context.Context) (func(), func(), error) {
	return func(context.Context) (func(), func(), error) {
		once, err := start()
		return once, func() {}, err
	}
}

// withOwner is a path of an owner of 64 leases.
func withOwner(start func(context.Context, *loadgen.Local) (func(), error)) func(context.Context) (func(), func(), error) {
	return func(ctx context.Context) (func(), func(), error) {
		s, err := loadgen.StartLocal(ctx)
		if err != nil {
			return nil, nil, err
		}
		once, err := start(ctx, s)
		return once, s.Close, err
	}
}

func startFind(ctx context.Context) (once, stop func(), err error) {
	s, err := loadgen.StartLocal(ctx)
	if err != nil {
		return nil, nil, err
	}
	l, err := s.Lookup(ctx)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	names := s.Names()
	i, sum := 0, 0
	once = func() {
		addr, _ := l.Find(leasehold.KeyOf(names[i%len(names)]))
		sum += len(addr)
		i++
	}
	return once, func() { _ = l.Close(context.Background()); s.Close() }, nil
}

func check(_ context.Context, s *loadgen.Local) (func(), error) {
	o, keys := s.Owner, s.Keys()
	i, sum := 0, leasehold.Generation(0)
	return func() {
		if l, ok := o.Check(keys[i%len(keys)]); ok {
			sum += l.Generation
		}
		i++
	}, nil
}

func held(_ context.Context, s *loadgen.Local) (func(), error) {
	o := s.Owner
	lease, ok := o.Check(s.Keys()[0])
	if !ok {
		return nil, fmt.Errorf("the owner does not hold its own key")
	}
	n := 0
	return func() {
		if o.Held(lease) {
			n++
		}
	}, nil
}

// newMap returns a map that has all names.
func newMap(ctx context.Context, s *loadgen.Local) (*leasemap.Map[int], []string, error) {
	m, err := leasemap.New(leasemap.Config[int]{})
	if err != nil {
		return nil, nil, err
	}
	m.Use(s.Owner)
	names := s.Names()
	for _, name := range names {
		if _, err := m.Update(ctx, name, addOne); err != nil {
			return nil, nil, err
		}
	}
	return m, names, nil
}

func addOne(v *int) error { *v++; return nil }

func mapGet(ctx context.Context, s *loadgen.Local) (func(), error) {
	m, names, err := newMap(ctx, s)
	i, sum := 0, 0
	return func() {
		v, _, err := m.Get(names[i%len(names)])
		if err != nil {
			panic(err)
		}
		sum += v
		i++
	}, err
}

func mapUpdate(ctx context.Context, s *loadgen.Local) (func(), error) {
	m, names, err := newMap(ctx, s)
	i := 0
	return func() {
		if _, err := m.Update(ctx, names[i%len(names)], addOne); err != nil {
			panic(err)
		}
		i++
	}, err
}
