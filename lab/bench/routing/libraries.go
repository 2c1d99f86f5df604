package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-rendezvous"
	lafikl "github.com/lafikl/consistent"
	"github.com/serialx/hashring"
	stathat "github.com/stathat/consistent"
)

// mostBuilding is how long a ring may take to build. Rings that sort themselves
// for each server that is added need minutes for 10,000 of them.
const mostBuilding = 40 * time.Second

// addAll adds all servers, unless that takes too long.
func addAll(servers int, add func(string)) error {
	start := time.Now()
	for i, addr := range addresses(servers) {
		if add(addr); time.Since(start) > mostBuilding {
			return fmt.Errorf("after %v it has %d of %d servers: it sorts its ring again for each", mostBuilding, i+1, servers)
		}
	}
	return nil
}

// goes is the server that goes and comes back. It is not the first, to which
// some are kinder.
func goes() string { return address(1) }

// startStathat is stathat/consistent as it comes, with 20 points for each server.
// It hashes with CRC-32, searches a sorted list, and looks into a map.
func startStathat(_ context.Context, servers int) (*router, error) {
	ring := stathat.New()
	c := &router{name: "stathat/consistent", pieces: servers * ring.NumberOfReplicas, close: nothing}
	if err := addAll(servers, ring.Add); err != nil {
		return c, err
	}
	names := names()
	c.find = func(first, n int) (sum int) {
		for i := range n {
			addr, _ := ring.Get(names[(first+i)%asked])
			sum += len(addr)
		}
		return sum
	}
	c.change = func(i int) error {
		if i%2 == 0 {
			ring.Remove(goes())
		} else {
			ring.Add(goes())
		}
		return nil
	}
	return c, nil
}

// startSerialx is serialx/hashring as its README has it, with one
// point for each server. It hashes with MD5. A change makes another ring; readers get it from a pointer that is swapped.
func startSerialx(_ context.Context, servers int) (*router, error) {
	var current atomic.Pointer[hashring.HashRing]
	current.Store(hashring.New(addresses(servers)))
	names := names()
	return &router{
		name: "serialx/hashring", pieces: servers, close: nothing,
		find: func(first, n int) (sum int) {
			for i := range n {
				addr, _ := current.Load().GetNode(names[(first+i)%asked])
				sum += len(addr)
			}
			return sum
		},
		change: func(i int) error {
			if i%2 == 0 {
				current.Store(current.Load().RemoveNode(goes()))
			} else {
				current.Store(current.Load().AddNode(goes()))
			}
			return nil
		},
	}, nil
}

// startRendezvous is dgryski/go-rendezvous with XXH64, as its README has it. It
// has no ring: it hashes the name with every server, and takes the highest. That
// spreads keys best, and moves the fewest.
func startRendezvous(_ context.Context, servers int) (*router, error) {
	all := addresses(servers)
	var current atomic.Pointer[rendezvous.Rendezvous]
	current.Store(rendezvous.New(all, xxhash.Sum64String))
	names := names()
	return &router{
		name: "dgryski/go-rendezvous", pieces: servers, close: nothing,
		find: func(first, n int) (sum int) {
			for i := range n {
				sum += len(current.Load().Lookup(names[(first+i)%asked]))
			}
			return sum
		},
		change: func(i int) error { // it cannot be changed while it is read
			if i%2 == 0 {
				current.Store(rendezvous.New(append([]string{all[0]}, all[2:]...), xxhash.Sum64String))
			} else {
				current.Store(rendezvous.New(all, xxhash.Sum64String))
			}
			return nil
		},
	}, nil
}

// startLafikl is lafikl/consistent, of which Get ignores loads, as all others do
// here. It has 10 points for each server, and hashes with BLAKE2b.
func startLafikl(_ context.Context, servers int) (*router, error) {
	const points = 10
	ring := lafikl.New()
	c := &router{name: "lafikl/consistent", pieces: servers * points, close: nothing}
	if err := addAll(servers, ring.Add); err != nil {
		return c, err
	}
	names := names()
	c.find = func(first, n int) (sum int) {
		for i := range n {
			addr, _ := ring.Get(names[(first+i)%asked])
			sum += len(addr)
		}
		return sum
	}
	c.change = func(i int) error {
		if i%2 == 0 {
			ring.Remove(goes())
		} else {
			ring.Add(goes())
		}
		return nil
	}
	return c, nil
}
