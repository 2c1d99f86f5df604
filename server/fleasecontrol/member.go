package fleasecontrol

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

// Events are called as a member starts.
type Events struct {
	Started func(*flease.Node) error // it listens; an error stops it
	Ready   func(flease.Status)      // it takes part
}

// farewell is how long a member that stops waits for the others to hear of it.
const farewell = 5 * time.Second

// RunMember runs a member until ctx ends, or the member no longer takes part. It
// serves the control API on the listener, if that is not nil, and closes it. The
// configuration has a Lease and a Logger.
func RunMember(ctx context.Context, cfg flease.Config, control net.Listener, events Events) error {
	node, err := flease.Start(cfg)
	if err != nil {
		if control != nil {
			err = errors.Join(err, control.Close())
		}
		return err
	}
	var server *Server // nil if there is none
	if control != nil {
		server = Serve(node, cfg.Lease, control, cfg.Logger)
	}
	err = attend(ctx, node, events)
	ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	err = errors.Join(err, node.Close(ended)) // ends the requests that the server has
	if server != nil {
		err = errors.Join(err, server.Close(ended))
	}
	return err
}

// attend reports the events of a node, and waits until ctx ends or the node is done.
func attend(ctx context.Context, node *flease.Node, events Events) error {
	if err := events.Started(node); err != nil {
		return err
	}
	if node.Ready(ctx) == nil {
		events.Ready(node.Status())
	}
	select {
	case <-node.Done():
		return node.Err()
	case <-ctx.Done():
		return nil
	}
}
