package leasemap_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/owner"
)

// A Status is the last status of a user.
type Status struct {
	Text string
	Said int // number of updates
}

// A server joins with a map of its names. Packages leasegrpc and leasehttp route requests
// to the owner of the name.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	statuses, err := leasemap.Join(ctx, owner.Config{
		Namespace: "presence",
		Managers:  []string{"10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"},
		Addr:      "10.0.1.7:8080",
	}, leasemap.Config[Status]{TTL: time.Hour})
	if err != nil {
		log.Print(err)
		return
	}
	_, err = statuses.Set(ctx, "ann", Status{Text: "at lunch"})
	switch {
	case errors.Is(err, leasehold.ErrNotOwner):
		log.Print("ann is with another server: the caller looks again")
	case err != nil:
		log.Print(err)
	}
	// All names move to other servers. The server serves requests meanwhile.
	if err := statuses.Close(ctx); err != nil {
		log.Print(err)
	}
}

// A User and a Room are values of two maps.
type (
	User struct{ Room string }
	Room struct{ Players []string }
)

// A server with values of several types has a group of maps.
func ExampleGroup() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var state leasemap.Group
	users := leasemap.Add(&state, "users", leasemap.Config[User]{TTL: time.Hour})
	rooms := leasemap.Add(&state, "rooms", leasemap.Config[Room]{})
	err := state.Join(ctx, owner.Config{
		Namespace: "arena",
		Managers:  []string{"10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"},
		Addr:      "10.0.1.7:8080",
	})
	if err != nil {
		log.Print(err)
		return
	}
	_, err1 := users.Set(ctx, "ann", User{Room: "green"})
	_, err2 := rooms.Update(ctx, "green", func(r *Room) error { // another name: perhaps another server
		r.Players = append(slices.Clone(r.Players), "ann")
		return nil
	})
	if err := errors.Join(err1, err2); err != nil {
		log.Print(err)
	}
	// All names of both maps move to other servers.
	if err := state.Close(ctx); err != nil {
		log.Print(err)
	}
}

// all is the Checker of a server that always holds all keys.
type all struct{}

func (all) Check(key leasehold.Key) (owner.Lease, bool) {
	return owner.Lease{Lease: leasehold.Lease{Range: leasehold.All, Generation: 1}, Key: key}, true
}
func (all) Held(owner.Lease) bool                      { return true }
func (all) Suspended(leasehold.Key) bool               { return false }
func (all) Await(context.Context, leasehold.Key) error { return nil }

func alone[V any]() *leasemap.Map[V] {
	m, err := leasemap.New(leasemap.Config[V]{}, all{})
	if err != nil {
		log.Fatal(err)
	}
	return m
}

func ExampleMap_Update() {
	ctx, statuses := context.Background(), alone[Status]()
	for _, text := range []string{"at home", "at work"} {
		_, err := statuses.Update(ctx, "ann", func(s *Status) error {
			s.Text, s.Said = text, s.Said+1
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	status, _, err := statuses.Get("ann")
	fmt.Println(status, err)
	// Output: {at work 2} <nil>
}

// Of two concurrent read-modify-write operations the second fails.
func ExampleWithVersion() {
	ctx, statuses := context.Background(), alone[string]()
	read, err := statuses.Set(ctx, "ann", "at home")
	if err != nil {
		log.Fatal(err)
	}
	_, first := statuses.Set(ctx, "ann", "at work", leasemap.WithVersion(read))
	_, second := statuses.Set(ctx, "ann", "away", leasemap.WithVersion(read))
	status, _, _ := statuses.Get("ann")
	fmt.Println(first, errors.Is(second, leasehold.ErrStale), status)
	// Output: <nil> true at work
}

// A game room has a goroutine while it exists, on the server that owns it.
func ExampleConfig_resident() {
	type Game struct{ Ticks int }
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var games *leasemap.Map[Game]
	joined := make(chan struct{})
	run := func(ctx context.Context, name string) {
		<-joined
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ticks := 0; ; ticks++ {
			select {
			case <-tick.C:
				continue
			case <-ctx.Done(): // the game moves, its lease is suspended or has ended, or it was deleted
			}
			_, err := games.Do(context.WithoutCancel(ctx), name, func(e *leasemap.Entry[Game]) error {
				if !e.Version.Exists() {
					e.Keep()
				}
				e.Value.Ticks += ticks // moves with the game
				return nil
			})
			if err != nil {
				log.Print(err)
			}
			return
		}
	}
	games, err := leasemap.Join(ctx, owner.Config{
		Namespace: "games",
		Managers:  []string{"10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"},
		Addr:      "10.0.1.7:8080",
	}, leasemap.Config[Game]{Resident: run})
	if err != nil {
		log.Print(err)
		return
	}
	close(joined)
	if _, err := games.Set(ctx, "green", Game{}); err != nil { // starts it
		log.Print(err)
	}
	if err := games.Close(ctx); err != nil {
		log.Print(err)
	}
}
