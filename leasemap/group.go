package leasemap

import (
	"context"
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Group is a server's maps, with values of several types. They have one owner, so they own the same
// keys: a range moves with its values of all maps, and is suspended, resumed and lost for
// all of them. The zero Group is empty. Add all maps before Join, and use them after it has returned.
//
//	var state leasemap.Group
//	users := leasemap.Add(&state, "users", leasemap.Config[User]{TTL: time.Hour})
//	rooms := leasemap.Add(&state, "rooms", leasemap.Config[Room]{})
//	err := state.Join(ctx, owner.Config{
//		Namespace: "arena", Managers: managers, Addr: self,
//	})
//	...
//	err = state.Close(ctx)
//
// A move identifies maps by their names. If the target does not have the map of a value, it
// refuses the range, and the source keeps it; nothing is lost. So servers of two versions of an
// application may have different maps: see docs/operations/upgrade.md.
type Group struct {
	maps    map[string]anyMap
	names   []string // in the order of Add
	invalid []error  // of Add; Join returns them
	joined  bool     // Join was called and has not failed
	owner   *owner.Owner
	running sync.WaitGroup // of the maps' goroutines

	// stopAlarms ends the context of OnAlarm, which would block the moves of Close, and stop that of all others.
	stopAlarms, stop context.CancelFunc
}

// anyMap is a map in a group, for any type of its values.
type anyMap interface {
	begin(out outgoing) copying
	stage() staging
	revoked(ended []leasehold.Lease, cause leasehold.Cause)
	use(g *Group, leases owner.Checker)
	run(ctx context.Context)
	runAlarms(ctx context.Context)
	settle(ctx context.Context)
	finish(ctx context.Context) error
}

const (
	opAdd      = "add map"
	opJoin     = "join"
	maxMapName = 100 // bytes
)

// Add adds a map to a group, under a name that is the same in all servers and versions of the
// application. The name "" is that of a map of [Join], to which a new version of an
// application can add more maps. [Group.Join] returns the errors of an invalid configuration or
// name. Add panics after Join: values that have arrived meanwhile would have been refused. It
// must not be called concurrently with another Add or Join.
func Add[V any](g *Group, name string, cfg Config[V]) *Map[V] {
	if g.joined {
		panic("leasemap: Add of " + name + " after Join: add all maps first")
	}
	m, err := newMap(cfg)
	if err != nil {
		g.invalid = append(g.invalid, leasehold.Errorf(opAdd, leasehold.ErrInvalid, name, "%w", err))
	}
	switch {
	case g.maps[name] != nil:
		g.invalid = append(g.invalid, leasehold.Errorf(opAdd, leasehold.ErrInvalid, name, "the group has a map of this name already: choose another"))
	case len(name) > maxMapName || !utf8.ValidString(name):
		g.invalid = append(g.invalid, leasehold.Errorf(opAdd, leasehold.ErrInvalid, name, "the name is too long or not UTF-8: choose one of at most %d bytes", maxMapName))
	}
	if g.maps == nil {
		g.maps = make(map[string]anyMap)
	}
	g.maps[name] = m
	g.names = append(g.names, name)
	return m
}

// Join joins a namespace with the maps as the server's state, like [owner.Join]. It sets Export and
// Import in the Mover of the configuration, whose addresses and credentials apply. OnRevoke of the
// configuration is called after the values of the leases are removed. Callbacks may use the maps: they are called when
// Join has the owner.
func (g *Group) Join(ctx context.Context, as owner.Config) (err error) {
	switch {
	case g.joined:
		return leasehold.Errorf(opJoin, leasehold.ErrInvalid, string(as.Namespace), "the group has joined already: use a Group for each owner")
	case len(g.invalid) > 0:
		return errors.Join(g.invalid...)
	case len(g.maps) == 0:
		return leasehold.Errorf(opJoin, leasehold.ErrInvalid, string(as.Namespace), "the group has no map: call Add first")
	}
	if as.Mover, err = g.mover(as.Mover); err != nil {
		return err
	}
	ready := make(chan struct{})
	defer close(ready)
	g.callbacks(&as, ready)
	if g.owner, err = owner.Join(ctx, as); err != nil {
		return err
	}
	g.joined = true
	running, stop := context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	alarms, stopAlarms := context.WithCancel(running)
	g.stop, g.stopAlarms = stop, stopAlarms
	for _, m := range g.maps {
		m.use(g, g.owner)
		g.running.Go(func() { m.run(running) })
		g.running.Go(func() { m.runAlarms(alarms) })
	}
	return nil
}

// mover returns a Mover of all maps, with the settings of the given one, if any.
func (g *Group) mover(given *owner.Mover) (*owner.Mover, error) {
	mover := new(owner.Mover)
	if given != nil {
		if given.Export != nil || given.Import != nil {
			return nil, leasehold.Errorf(opJoin, leasehold.ErrInvalid, "", "Mover has Export or Import, which the maps set: leave out both, and add a map for other state to a Group")
		}
		*mover = *given
	}
	mover.Export = func(ctx context.Context, out *owner.Export) error { return g.export(ctx, out) }
	mover.Import = func(ctx context.Context, in *owner.Import) (func(leasehold.Lease), error) { return g.receive(ctx, in) }
	return mover, nil
}

// callbacks lets the application's callbacks wait until it can use the maps: the owner calls them as soon as it has
// joined. Values of revoked leases are removed at once.
func (g *Group) callbacks(as *owner.Config, ready <-chan struct{}) {
	for _, call := range []*func([]leasehold.Lease){&as.OnGrant, &as.OnSuspend, &as.OnResume} {
		if given := *call; given != nil {
			*call = func(leases []leasehold.Lease) {
				<-ready
				given(leases)
			}
		}
	}
	given := as.OnRevoke
	as.OnRevoke = func(ended []leasehold.Lease, cause leasehold.Cause) {
		g.revoked(ended, cause)
		if given != nil {
			<-ready
			given(ended, cause)
		}
	}
}

// revoked removes the values of leases that have ended from all maps.
func (g *Group) revoked(ended []leasehold.Lease, cause leasehold.Cause) {
	for _, m := range g.maps {
		m.revoked(ended, cause)
	}
}

// Owner returns the owner of the group, nil before Join.
func (g *Group) Owner() *owner.Owner { return g.owner }

// Close moves all names with their values of all maps to other servers, as [owner.Owner.Close] does,
// saves what write-behind has not saved, and ends the goroutines of the maps. Call it before the server stops serving.
func (g *Group) Close(ctx context.Context) error {
	if !g.joined {
		return leasehold.Errorf(opClose, leasehold.ErrInvalid, "", "the group has no owner: Join was not called, or has failed")
	}
	g.stopAlarms()
	for _, m := range g.maps {
		m.settle(ctx)
	}
	err := g.owner.Close(ctx)
	g.stop()
	g.running.Wait()
	for _, m := range g.maps {
		err = errors.Join(err, m.finish(ctx))
	}
	return err
}
