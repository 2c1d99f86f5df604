package load

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/frontend"
	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
)

// Open returns n publishers for so many callers each: through frontends if there are any, or
// straight to the servers. What it returns last closes their lookups.
func Open(ctx context.Context, managers, frontends []string, n, callers int) (all []im.PublisherConfig, closeAll func(), err error) {
	closeAll = func() {
		for _, p := range all {
			_ = p.Lookup.Close(context.Background()) // it never fails
		}
	}
	for i := range n {
		p, err := open(ctx, managers)
		if err == nil && len(frontends) > 0 {
			p.Client.Client, err = frontend.Client(frontends[i%len(frontends)], callers)
		}
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		all = append(all, p)
	}
	return all, closeAll, nil
}

// open returns a publisher that finds the servers by itself.
func open(ctx context.Context, managers []string) (p im.PublisherConfig, err error) {
	p.Lookup, err = lookup.Open(ctx, lookup.Config{Namespace: "im", Managers: managers, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return p, err
	}
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: p.Lookup, Key: jsonhttp.Key()})
	p.Client = &im.Client{Client: jsonhttp.Client{HTTP: &http.Client{Transport: transport, Timeout: time.Minute}, URL: "http://im"}}
	return p, err
}
