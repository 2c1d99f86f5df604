package device

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

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
