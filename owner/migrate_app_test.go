package owner

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasehold-dev/leasehold"
)

// A counter is the application's state of a key.
type counter struct {
	count      uint64
	generation leasehold.Generation // of the last write
}

// A counting is an application that counts requests in memory, with the obligations
// of package leasehold, and moves its state.
type counting struct {
	owner  *Owner
	events eventLog

	mu       sync.Mutex
	counters map[leasehold.Key]counter
	changed  map[leasehold.Key]struct{} // since the last export
}

// counts joins a counting owner with a Mover.
func (n *network) counts(addr string, change func(*Config)) *counting {
	n.t.Helper()
	c := &counting{counters: make(map[leasehold.Key]counter), changed: make(map[leasehold.Key]struct{})}
	cfg := n.config(addr)
	cfg.Mover = n.mover("mover-" + addr)
	cfg.Mover.Export, cfg.Mover.Import = c.export, c.take
	cfg.Logger = c.events.logger()
	cfg.OnGrant = func([]leasehold.Lease) { c.events.add("granted") }
	cfg.OnRevoke = func(_ []leasehold.Lease, cause leasehold.Cause) { c.events.add("revoked: " + cause.String()) }
	change(&cfg)
	c.mu.Lock() // an import may begin before c.owner is set
	o, err := Join(n.t.Context(), cfg)
	c.owner = o
	c.mu.Unlock()
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { // for tests without a Close
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = o.Close(ctx)
		<-o.moves.ended
	})
	return c
}

func asConfigured(*Config) {}

// mover returns a Mover with a listener in the network.
func (n *network) mover(addr string) *Mover {
	listener := bufconn.Listen(1 << 16)
	n.mu.Lock()
	n.at[addr] = listener
	n.mu.Unlock()
	return &Mover{
		Listener: listener, Advertise: addr, DialOptions: []grpc.DialOption{grpc.WithContextDialer(n.dial)},
		Credentials: insecure.NewCredentials(), ServerCredentials: insecure.NewCredentials(),
	}
}

// add counts a request and returns the count, or false if this server is
// not the owner.
func (c *counting) add(key leasehold.Key) (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lease, ok := c.owner.Check(key)
	now := c.counters[key]
	if !ok || now.generation > lease.Generation {
		return 0, false
	}
	if now.generation < lease.Generation {
		now = counter{generation: lease.Generation}
	}
	now.count++
	c.counters[key] = now
	c.changed[key] = struct{}{}
	return now.count, c.owner.Held(lease)
}

// export sends all counters, and after Stop the changed ones again.
func (c *counting) export(_ context.Context, out *Export) error {
	if err := c.send(out, c.keys(out.Range(), true)); err != nil {
		return err
	}
	if err := out.Stop(); err != nil {
		return err
	}
	return c.send(out, c.keys(out.Range(), false))
}

// keys returns all keys of a range, or the keys that have changed since the last
// call.
func (c *counting) keys(r leasehold.Range, all bool) []leasehold.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []leasehold.Key
	for key := range c.counters {
		if _, changed := c.changed[key]; r.Contains(key) && (all || changed) {
			keys = append(keys, key)
			delete(c.changed, key)
		}
	}
	return keys
}

func (c *counting) send(out *Export, keys []leasehold.Key) error {
	for _, key := range keys {
		c.mu.Lock()
		now := c.counters[key]
		c.mu.Unlock()
		if now.generation != out.Generation(key) {
			continue // state of an earlier tenure
		}
		record := binary.BigEndian.AppendUint64(nil, uint64(key))
		if err := out.Send(binary.BigEndian.AppendUint64(record, now.count)); err != nil {
			return err
		}
	}
	return nil
}

// take keeps counters aside until the lease is granted.
func (c *counting) take(_ context.Context, in *Import) (func(leasehold.Lease), error) {
	aside := make(map[leasehold.Key]uint64)
	for record, err := range in.Records() {
		if err != nil {
			return nil, err
		}
		aside[leasehold.Key(binary.BigEndian.Uint64(record))] = binary.BigEndian.Uint64(record[8:])
	}
	return func(l leasehold.Lease) {
		c.mu.Lock()
		defer c.mu.Unlock()
		for key, count := range aside {
			if l.Range.Contains(key) {
				c.counters[key] = counter{count, l.Generation}
			}
		}
	}, nil
}

// A crowd sends requests to several servers, and checks the results.
type crowd struct {
	t       *testing.T
	servers []*counting
	want    map[leasehold.Key]uint64 // acknowledged counts
}

func newCrowd(t *testing.T, servers ...*counting) *crowd {
	return &crowd{t: t, servers: servers, want: make(map[leasehold.Key]uint64)}
}

// send sends one request for each key to its owner. A count below
// the acknowledged one means that state was lost.
func (c *crowd) send() {
	c.t.Helper()
	for _, key := range keys() {
		var served *counting
		for _, s := range c.servers {
			count, ok := s.add(key)
			if !ok {
				continue
			}
			if served != nil { // it may have moved since
				if _, still := served.owner.Check(key); still {
					c.t.Fatalf("key %v has two owners", key)
				}
			}
			served = s
			if c.want[key]++; count != c.want[key] {
				c.t.Fatalf("key %v at %s: the count is %d, want %d: state was lost\n%q", key, s.owner.Name(), count, c.want[key], s.events.lines)
			}
		}
	}
}

// has returns the keys that a server holds.
func (c *counting) has() []leasehold.Key {
	var out []leasehold.Key
	for _, k := range keys() {
		if _, ok := c.owner.Check(k); ok {
			out = append(out, k)
		}
	}
	return out
}
