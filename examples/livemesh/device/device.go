// Package device is the client of Live Mesh on a user's machine: it publishes its own address,
// and follows those of other devices (Centrifuge, figure 11).
//
// All state of a device is in the memory of the services, and may be lost. The device handles
// every loss in the same way: it sends all its state again, which is idempotent. It registers
// its interests with its queue first, so that it is notified of every later loss.
package device

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/examples/livemesh/pubsub"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// Section is the section of a device's document that has its address.
const Section = "address"

// The names of services in a device's interests.
const (
	Documents = "documents"
	Topics    = "topics"
)

// Config configures a device.
type Config struct {
	Name string
	// Watch are the devices whose addresses it follows.
	Watch []string

	// Frontend is the client of all services.
	Frontend jsonhttp.Client

	// Learned, if set, is called when the address of a watched device changes; it is empty
	// if the device has none.
	Learned func(peer, address string)
	// Logger receives losses, and requests that fail for seconds. Default slog.Default().
	Logger *slog.Logger
}

const (
	refreshing = 10 * time.Minute
	longPoll   = 25 * time.Second
	minBackoff = 100 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// A Device is the client of one machine. Its methods are safe for concurrent use.
type Device struct {
	cfg       Config
	documents documents.Client
	topics    pubsub.Client
	queues    queue.Client

	resend chan struct{} // state may have been lost
	moved  chan struct{} // the address has changed
	news   chan struct{} // documents of watched devices have changed

	version string // of the published address; only for send

	mu      sync.Mutex
	address string
	peers   map[string]string // addresses of watched devices
	changed map[string]bool   // watched devices whose documents are to be read
}

// New returns a device with an address.
func New(cfg Config, address string) *Device {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Device{
		cfg: cfg, documents: documents.Client{Client: cfg.Frontend}, topics: pubsub.Client{Client: cfg.Frontend}, queues: queue.Client{Client: cfg.Frontend},
		resend: make(chan struct{}, 1), moved: make(chan struct{}, 1), news: make(chan struct{}, 1),
		address: address, peers: make(map[string]string), changed: make(map[string]bool),
	}
}

// Move sets a new address, and publishes it in the background.
func (d *Device) Move(address string) {
	d.mu.Lock()
	d.address = address
	d.mu.Unlock()
	signal(d.moved)
}

// Address returns the address of a watched device, "" if it is unknown or has none.
func (d *Device) Address(other string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peers[other]
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // a signal is pending already
	}
}

// Run runs the device until the context ends.
func (d *Device) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.receive(ctx) })
	group.Go(func() error { return d.send(ctx) })
	err := group.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// receive receives messages from the queue. Its first request opens the queue, and makes send
// publish the device's state.
func (d *Device) receive(ctx context.Context) error {
	var at queue.Place
	for {
		var b queue.Batch
		err := d.repeat(ctx, "receive", func() (err error) {
			wait := longPoll
			if at.Epoch == "" {
				wait = 0
			}
			b, err = d.queues.Receive(ctx, d.cfg.Name, at, wait)
			return err
		})
		if err != nil {
			return err
		}
		if at.Epoch == "" || b.Lost {
			d.cfg.Logger.Info("a new queue", "device", d.cfg.Name, "epoch", b.Epoch)
			signal(d.resend)
		}
		for _, m := range b.Messages {
			d.take(m)
		}
		at = b.Next(at)
	}
}

// take processes a message. Any client can enqueue one: an invalid one may have replaced a valid
// one.
func (d *Device) take(m queue.Message) {
	var news documents.News
	switch {
	case m.Missed:
		d.cfg.Logger.Info("messages were missed", "device", d.cfg.Name)
		signal(d.resend)
	case m.Lost != nil:
		d.cfg.Logger.Info("a service has lost state", "device", d.cfg.Name, "service", m.Lost.Service, "names", m.Lost.Names)
		signal(d.resend)
	case json.Unmarshal(m.Body, &news) != nil:
		signal(d.resend)
	case slices.Contains(d.cfg.Watch, news.Document): // or an earlier device of this name has subscribed
		d.mu.Lock()
		d.changed[news.Document] = true
		d.mu.Unlock()
		signal(d.news)
	}
}

// takeChanged returns the watched devices whose documents have changed since the last call.
func (d *Device) takeChanged() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := slices.Collect(maps.Keys(d.changed))
	clear(d.changed)
	return names
}

// read reads the addresses of other devices. If one has none, a message follows when it has one.
func (d *Device) read(ctx context.Context, names []string) error {
	for _, name := range names {
		document, err := d.documents.Get(ctx, name)
		if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
			return err
		}
		var address string
		_ = json.Unmarshal(document.Sections[Section].Data, &address) // anything else is no address
		d.mu.Lock()
		before := d.peers[name]
		d.peers[name] = address
		d.mu.Unlock()
		if before != address && d.cfg.Learned != nil {
			d.cfg.Learned(name, address)
		}
	}
	return nil
}
