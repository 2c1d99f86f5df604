// Package device is what runs on a computer of a user of Live Mesh: it publishes its own
// address, and knows those of the user's other computers (Centrifuge, figure 11).
//
// All that a device has said to services is in memory there, and may be lost. It has one
// answer to all losses: whatever it learns that may have been lost, it says everything
// again, which does no harm twice. What it depends on it tells its queue first, so that it
// learns of all that is lost after that.
package device

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// Section is where in its document a device keeps its address.
const Section = "address"

// What services devices depend on are called in their queues.
const (
	Documents = "documents"
	Topics    = "topics"
)

// Config says who a device is, and how it reaches the services.
type Config struct {
	Name string
	// Watch are the devices whose addresses it wants to know.
	Watch []string

	// Frontend is how it reaches all services.
	Frontend jsonhttp.Client

	// Learned, if set, is called when the address of another device, or that it has none,
	// becomes known.
	Learned func(peer, address string)
	// Logger gets losses, and what fails for seconds. Default slog.Default().
	Logger *slog.Logger
}

const (
	subscription = time.Hour
	refreshing   = 10 * time.Minute
	longPoll     = 25 * time.Second
	minBackoff   = 100 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

// A Device is one computer.
type Device struct {
	cfg       Config
	documents documents.Client
	topics    pubsub.Client
	queues    queue.Client

	again chan struct{} // something may have been lost
	moved chan struct{} // it has a new address

	version string // of the address that was published last; for whoever speaks

	mu      sync.Mutex
	address string
	peers   map[string]peer
}

// A peer is what is known of another device.
type peer struct {
	version string // of the section that was seen last, whether it is there or not
	address string
}

// New returns a device that has an address.
func New(cfg Config, address string) *Device {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Device{
		cfg: cfg, documents: documents.Client{Client: cfg.Frontend}, topics: pubsub.Client{Client: cfg.Frontend}, queues: queue.Client{Client: cfg.Frontend},
		address: address, again: make(chan struct{}, 1), moved: make(chan struct{}, 1), peers: make(map[string]peer),
	}
}

// Move gives the device a new address, of which others will know soon.
func (d *Device) Move(address string) {
	d.mu.Lock()
	d.address = address
	d.mu.Unlock()
	signal(d.moved)
}

// Address is that of another device, "" if it is not known or has none.
func (d *Device) Address(other string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[other].address
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will be noticed once for both
	}
}

// Run is what the device does until the context ends.
func (d *Device) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.receive(ctx) })
	group.Go(func() error { return d.speak(ctx) })
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
