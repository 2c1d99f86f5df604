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
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
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

	Documents *documents.Client
	Topics    *pubsub.Client
	Queues    *queue.Client

	// Learned is called when the address of another device, or that it has none, becomes
	// known. Default: nobody is told.
	Learned func(peer, address string)
	// Logger hears of what was lost, and of what fails for seconds. Default slog.Default().
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
	cfg   Config
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
		cfg: cfg, address: address, again: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		peers: make(map[string]peer),
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
			b, err = d.cfg.Queues.Receive(ctx, d.cfg.Name, at, wait)
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

// learn takes in what another device's address is, if it is news.
func (d *Device) learn(name, version string, data json.RawMessage) {
	var address string
	if data != nil && json.Unmarshal(data, &address) != nil {
		return // it is no address
	}
	d.mu.Lock()
	known := d.peers[name]
	newer := documents.Newer(version, known.version)
	if newer {
		d.peers[name] = peer{version, address}
	}
	d.mu.Unlock()
	if newer && address != known.address && d.cfg.Learned != nil {
		d.cfg.Learned(name, address)
	}
}

// speak says what others are to know: everything when something may have been lost, and
// the address when it has changed. From time to time it refreshes what would expire.
func (d *Device) speak(ctx context.Context) error {
	refresh := time.NewTicker(refreshing)
	defer refresh.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.again:
			err = d.repeat(ctx, "say everything again", func() error { return d.everything(ctx) })
		case <-d.moved:
			err = d.repeat(ctx, "publish the address", func() error { return d.publish(ctx) })
		case <-refresh.C:
			err = d.repeat(ctx, "refresh", func() error { return d.refresh(ctx) })
		}
		if err != nil {
			return err
		}
	}
}

// everything comes in this order: what the device depends on first, and what it reads last.
func (d *Device) everything(ctx context.Context) error {
	interests := []queue.Interest{{Service: Documents, Name: d.cfg.Name}}
	for _, other := range d.cfg.Watch {
		interests = append(interests, queue.Interest{Service: Topics, Name: other}, queue.Interest{Service: Documents, Name: other})
	}
	if err := d.cfg.Queues.SetInterests(ctx, d.cfg.Name, interests); err != nil {
		return err
	}
	for _, other := range d.cfg.Watch {
		if err := d.cfg.Topics.Subscribe(ctx, other, d.cfg.Name, subscription); err != nil {
			return err
		}
	}
	if err := d.publish(ctx); err != nil {
		return err
	}
	for _, other := range d.cfg.Watch {
		if err := d.read(ctx, other); err != nil {
			return err
		}
	}
	return nil
}

func (d *Device) publish(ctx context.Context) error {
	d.mu.Lock()
	address := d.address
	d.mu.Unlock()
	data, err := json.Marshal(address)
	if err != nil {
		return err
	}
	err = d.write(ctx, data)
	if !errors.Is(err, leasehold.Stale) {
		return err
	}
	// It was lost, or a request of ours that had no answer has been carried out.
	document, err := d.cfg.Documents.Get(ctx, d.cfg.Name)
	if err != nil && !errors.Is(err, leasehold.NotFound) {
		return err
	}
	d.version = document.Sections[Section].Version
	return d.write(ctx, data)
}

// write replaces the version of the address that we know: a request that was given up, and
// arrives after this one, finds another and changes nothing.
func (d *Device) write(ctx context.Context, address json.RawMessage) error {
	document, err := d.cfg.Documents.Change(ctx, d.cfg.Name, documents.Change{
		If: map[string]string{Section: d.version}, Set: map[string]json.RawMessage{Section: address},
	})
	if err == nil {
		d.version = document.Sections[Section].Version
	}
	return err
}

// read learns another device's address, or that it has none: it will say so when it has.
func (d *Device) read(ctx context.Context, other string) error {
	d.mu.Lock()
	before := d.peers[other].version
	d.mu.Unlock()
	document, err := d.cfg.Documents.Get(ctx, other)
	if err != nil && !errors.Is(err, leasehold.NotFound) {
		return err
	}
	if section, ok := document.Sections[Section]; ok {
		d.learn(other, section.Version, section.Data)
	} else {
		d.forget(other, before)
	}
	return nil
}

// forget takes in that another device has no address any more, unless there was news of it
// since it had a version.
func (d *Device) forget(name, version string) {
	d.mu.Lock()
	known := d.peers[name]
	forgotten := known.version == version && known.address != ""
	if forgotten {
		d.peers[name] = peer{version, ""}
	}
	d.mu.Unlock()
	if forgotten && d.cfg.Learned != nil {
		d.cfg.Learned(name, "")
	}
}

// refresh lets everything last longer. What is not there any more is said again.
func (d *Device) refresh(ctx context.Context) error {
	err := d.cfg.Documents.Refresh(ctx, d.cfg.Name)
	for _, other := range d.cfg.Watch {
		if err == nil {
			err = d.cfg.Topics.Refresh(ctx, other, d.cfg.Name, subscription)
		}
	}
	if errors.Is(err, leasehold.NotFound) {
		signal(d.again)
		return nil
	}
	return err
}

// repeat does something until it succeeds or the context ends. What is wrong stays wrong,
// and ends it.
func (d *Device) repeat(ctx context.Context, what string, do func() error) error {
	said := false
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, leasehold.Invalid):
			return err
		}
		if !said && wait == maxBackoff { // that is no server that was restarted
			said = true
			d.cfg.Logger.Warn("cannot "+what+", and goes on trying", "device", d.cfg.Name, "err", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Known returns the addresses of all other devices that are known.
func (d *Device) Known() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := make(map[string]string)
	for name, p := range maps.All(d.peers) {
		if p.address != "" {
			known[name] = p.address
		}
	}
	return known
}
