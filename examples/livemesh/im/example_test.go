package im_test

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold/examples/livemesh/im"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
)

// A frontend publishes its connected users, and publishes them again after a server was killed.
func ExamplePublisher() {
	ctx := context.Background()
	l, err := lookup.Open(ctx, lookup.Config{Namespace: "im", Managers: []string{"127.0.0.1:7400"}})
	if err != nil {
		log.Fatal(err)
	}
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: jsonhttp.Key()})
	if err != nil {
		log.Fatal(err)
	}
	p := im.NewPublisher(im.PublisherConfig{
		Client: &im.Client{Client: jsonhttp.Client{HTTP: &http.Client{Transport: transport, Timeout: time.Minute}, URL: "http://im"}},
		Lookup: l,
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(running) }()

	// Alice has connected; another frontend may have published her.
	alice := im.Presence{Address: "sip:alice@example.com", Status: "online", IP: "10.0.0.1"}
	if err := p.Publish(ctx, "alice", alice); err != nil {
		log.Print(err) // Run retries
	}

	stop()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	_ = l.Close(context.Background()) // never fails
}
