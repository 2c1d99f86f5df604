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

// receive takes messages from the queue. Its first request opens the queue; only then has
// the device something to say to others.
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
			signal(d.again)
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
		signal(d.again)
	case m.Lost != nil:
		d.cfg.Logger.Info("a service has lost state", "device", d.cfg.Name, "service", m.Lost.Service, "names", m.Lost.Names)
		signal(d.again)
	default:
		var news documents.News
		if err := json.Unmarshal(m.Body, &news); err != nil || news.Long {
			signal(d.again) // we read it
			return
		}
		if !slices.Contains(d.cfg.Watch, news.Document) {
			return // who had the name before has subscribed to it
		}
		if data, ok := news.Set[Section]; ok {
			d.learn(news.Document, news.Version, data)
		} else if news.Deleted || slices.Contains(news.Removed, Section) {
			d.learn(news.Document, news.Version, nil)
		}
	}
}

// learn takes in what another device's address is, if that is newer than what is known.
func (d *Device) learn(name, version string, data json.RawMessage) {
	var address string
	if data != nil && json.Unmarshal(data, &address) != nil {
		return // it is no address
	}
	d.update(name, func(known peer) (peer, bool) {
		return peer{version, address}, documents.Newer(version, known.version)
	})
}

// forget takes in that another device has no address any more, unless that has changed since
// it had a version.
func (d *Device) forget(name, version string) {
	d.update(name, func(known peer) (peer, bool) { return peer{version, ""}, known.version == version })
}

// update changes what is known of another device, and reports a new address.
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
