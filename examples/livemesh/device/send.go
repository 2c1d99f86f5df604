package device

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/documents"
	"github.com/leasehold-dev/leasehold/examples/livemesh/queue"
)

// send sends all state when some may have been lost, the address when it has changed, and reads
// the documents of watched devices when they have changed. It refreshes state before it expires.
func (d *Device) send(ctx context.Context) error {
	refresh := time.NewTicker(refreshing)
	defer refresh.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.resend:
			err = d.repeat(ctx, "send all state", func() error { return d.sendAll(ctx) })
		case <-d.moved:
			err = d.repeat(ctx, "publish the address", func() error { return d.publish(ctx) })
		case <-d.news:
			names := d.takeChanged()
			err = d.repeat(ctx, "read addresses", func() error { return d.read(ctx, names) })
		case <-refresh.C:
			err = d.repeat(ctx, "refresh", func() error { return d.refresh(ctx) })
		}
		if err != nil {
			return err
		}
	}
}

// sendAll sends the interests first, then subscribes and publishes, and reads last. In this
// order no loss goes unnoticed.
func (d *Device) sendAll(ctx context.Context) error {
	interests := []queue.Interest{{Service: Documents, Name: d.cfg.Name}}
	for _, other := range d.cfg.Watch {
		interests = append(interests, queue.Interest{Service: Topics, Name: other}, queue.Interest{Service: Documents, Name: other})
	}
	if err := d.queues.SetInterests(ctx, d.cfg.Name, interests); err != nil {
		return err
	}
	for _, other := range d.cfg.Watch {
		if err := d.topics.Subscribe(ctx, other, d.cfg.Name); err != nil {
			return err
		}
	}
	if err := d.publish(ctx); err != nil {
		return err
	}
	return d.read(ctx, d.cfg.Watch)
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
	if !errors.Is(err, leasehold.ErrStale) {
		return err
	}
	// The document was lost, or an earlier request without a reply was executed.
	document, err := d.documents.Get(ctx, d.cfg.Name)
	if err != nil && !errors.Is(err, leasehold.ErrNotFound) {
		return err
	}
	d.version = document.Sections[Section].Version
	return d.write(ctx, data)
}

// write replaces the known version of the address: a delayed request that arrives later finds
// another version and fails.
func (d *Device) write(ctx context.Context, address json.RawMessage) error {
	document, err := d.documents.Change(ctx, d.cfg.Name, documents.Change{
		If: map[string]string{Section: d.version}, Set: map[string]json.RawMessage{Section: address},
	})
	if err == nil {
		d.version = document.Sections[Section].Version
	}
	return err
}

// refresh extends the TTL of all state. If some has expired or was lost, all is sent again.
func (d *Device) refresh(ctx context.Context) error {
	err := d.documents.Refresh(ctx, d.cfg.Name)
	for _, other := range d.cfg.Watch {
		if err == nil {
			err = d.topics.Refresh(ctx, other, d.cfg.Name)
		}
	}
	if errors.Is(err, leasehold.ErrNotFound) {
		signal(d.resend)
		return nil
	}
	return err
}

// repeat retries with backoff until it succeeds, the context ends, or the request is invalid.
func (d *Device) repeat(ctx context.Context, what string, do func() error) error {
	output := false
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, leasehold.ErrInvalid):
			return err
		}
		if !output && wait == maxBackoff { // not just a restarted server
			output = true
			d.cfg.Logger.Warn("cannot "+what+", retrying", "device", d.cfg.Name, "err", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
