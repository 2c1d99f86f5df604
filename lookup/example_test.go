package lookup_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/lookup"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{
		Namespace: "presence",
		Managers:  []string{"manager-1:7400", "manager-2:7400", "manager-3:7400"},
		Logger:    slog.Default(),
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = l.Close(context.Background()) }() // never fails without a deadline

	if addr, ok := l.Find(leasehold.KeyOf("user-4711")); ok {
		fmt.Println("user-4711 is at", addr)
	}
}

// An idempotent request is retried until the owner of the key has replied.
func ExampleLookup_Do() {
	var l *lookup.Lookup // from lookup.Open

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := l.Do(ctx, leasehold.KeyOf("user-4711"), func(ctx context.Context, addr string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+addr+"/status/user-4711", http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return leasehold.Errorf("put status", leasehold.ErrIndeterminate, addr, "%w", err)
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode == http.StatusMisdirectedRequest { // the server's code for ErrNotOwner
			return leasehold.ErrNotOwner
		}
		return nil
	}, lookup.WithIdempotent())
	if err != nil {
		log.Print(err)
	}
}

// A program that publishes state to servers publishes it again after a loss.
func ExampleLookup_Losses() {
	var l *lookup.Lookup // from lookup.Open
	mine := []string{"user-4711", "user-4712"}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	for loss, err := range l.Losses(ctx) {
		if err != nil {
			break // interrupted
		}
		for _, name := range mine {
			if loss.Range.Contains(leasehold.KeyOf(name)) {
				fmt.Println("publish again:", name)
			}
		}
	}
}

// A program that stores the LSN of its last handled loss misses no loss while it
// does not run.
func ExampleLookup_LossesSince() {
	var l *lookup.Lookup // from lookup.Open
	const last = leasehold.LSN(4711)
	save := func(leasehold.LSN) {}

	for loss, err := range l.LossesSince(context.Background(), last) {
		if err != nil {
			break
		}
		fmt.Println("recreate the state of", loss.Range)
		save(loss.Resume)
	}
}

// A frontend publishes the presence of its users. The servers keep it in memory; after a crash the frontend
// publishes again what was lost, and nothing else.
func ExamplePublisher() {
	var l *lookup.Lookup // from lookup.Open
	put := func(context.Context, string, string) (leasehold.Generation, error) { return 0, nil }

	p := lookup.NewPublisher(l, lookup.PublisherConfig[string]{
		Send: func(ctx context.Context, name, status string, _ bool) (written leasehold.Generation, err error) {
			err = l.Do(ctx, leasehold.KeyOf(name), func(ctx context.Context, addr string) error {
				written, err = put(ctx, addr, status)
				return err
			}, lookup.WithIdempotent())
			return written, err
		},
	})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		if err := p.Publish(ctx, "user-4711", "online"); err != nil {
			log.Print(err) // Run retries
		}
	}()
	if err := p.Run(ctx); err != nil {
		log.Print(err)
	}
}

// A scatter-gather call sends one request to each server.
func ExampleLookup_Group() {
	var l *lookup.Lookup // from lookup.Open
	for addr, names := range l.Group([]string{"user-4711", "user-4712", "user-4713"}) {
		fmt.Println("ask", addr, "for", names)
	}
}

// A gateway follows the server of one room.
func ExampleLookup_Watch() {
	var l *lookup.Lookup // from lookup.Open
	for room, err := range l.Watch(context.Background(), leasehold.KeyOf("room-7")) {
		if err != nil {
			break
		}
		fmt.Println("room-7 is at", room.Addr)
	}
}
