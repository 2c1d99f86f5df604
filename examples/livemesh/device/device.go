// Package device is the client of Live Mesh on a user's machine: it publishes the machine's
// address, and follows those of the user's other machines (Centrifuge, figure 11).
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
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

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
	subscription = time.Hour
	refreshing   = 10 * time.Minute
	longPoll     = 25 * time.Second
	minBackoff   = 100 * time.Millisecond
	maxBackoff   = 2 * time.Second
)

// A Device is the client of one machine. Its methods are safe for concurrent use.
type Device struct {
	cfg       Config
	documents documents.Client
	topics    pubsub.Client
	queues    queue.Client

	resend chan struct{} // state may have been lost
	moved  chan struct{} // the address has changed

	version string // of the published address; only for send

	mu      sync.Mutex
	address string
	peers   map[string]peer
}

// A peer is the state of a watched device.
type peer struct {
	version string // of the section that was seen last, whether it exists or not
	address string
}

// New returns a device with an address.
func New(cfg Config, address string) *Device {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Device{
		cfg: cfg, documents: documents.Client{Client: cfg.Frontend}, topics: pubsub.Client{Client: cfg.Frontend}, queues: queue.Client{Client: cfg.Frontend},
		address: address, resend: make(chan struct{}, 1), moved: make(chan struct{}, 1), peers: make(map[string]peer),
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
	return d.peers[other].address
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

func (d *Device) take(m queue.Message) {
	switch {
	case m.Missed:
		d.cfg.Logger.Info("messages were missed", "device", d.cfg.Name)
		signal(d.resend)
	case m.Lost != nil:
		d.cfg.Logger.Info("a service has lost state", "device", d.cfg.Name, "service", m.Lost.Service, "names", m.Lost.Names)
		signal(d.resend)
	default:
		var news documents.News
		if err := json.Unmarshal(m.Body, &news); err != nil || news.Long {
			signal(d.resend) // reads the document
			return
		}
		if !slices.Contains(d.cfg.Watch, news.Document) {
			return // an earlier device of this name has subscribed
		}
		if data, ok := news.Set[Section]; ok {
			d.learn(news.Document, news.Version, data)
		} else if news.Deleted || slices.Contains(news.Removed, Section) {
			d.learn(news.Document, news.Version, nil)
		}
	}
}

// learn records another device's address, if its version is newer.
func (d *Device) learn(name, version string, data json.RawMessage) {
	var address string
	if data != nil && json.Unmarshal(data, &address) != nil {
		return // not an address
	}
	d.update(name, func(known peer) (peer, bool) {
		return peer{version, address}, documents.Newer(version, known.version)
	})
}

// clearAddress records that another device has no address, unless it has changed since a
// version.
func (d *Device) clearAddress(name, version string) {
	d.update(name, func(known peer) (peer, bool) { return peer{version, ""}, known.version == version })
}

// update changes the state of another device, and reports a new address.
func (d *Device) update(name string, change func(known peer) (next peer, changed bool)) {
	d.mu.Lock()
	known := d.peers[name]
	next, changed := change(known)
	if changed {
		d.peers[name] = next
	}
	d.mu.Unlock()
	if changed && next.address != known.address && d.cfg.Learned != nil {
		d.cfg.Learned(name, next.address)
	}
}
