// Election is a few processes of which one leads: it alone writes to a ledger, once
// a second. When it dies, or steps down on Ctrl-C, another leads. They agree among
// themselves, by a lease of package flease.
//
//	go run ./examples/election ledger 127.0.0.1:7100
//	go run ./examples/election run 1 127.0.0.1:7100 1=127.0.0.1:7101,2=127.0.0.1:7102,3=127.0.0.1:7103
//
// and the second line again with 2 and 3, in a terminal each.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/flease"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "election:", err)
		os.Exit(1)
	}
}

const usage = "want: election ledger ADDRESS, or: election run ID LEDGER ID=ADDRESS,ID=ADDRESS"

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "ledger":
		return serve(ctx, args[1])
	case len(args) == 4 && args[0] == "run":
		members, err := parse(args[3])
		if err != nil {
			return err
		}
		self, err := strconv.ParseUint(args[1], 10, 32)
		if err != nil {
			return errors.New(usage)
		}
		return candidacy(ctx, flease.Config{
			Self: flease.ID(self), Members: members, Lease: 2 * time.Second, Epsilon: 100 * time.Millisecond,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}, remote{"http://" + args[2], http.DefaultClient})
	}
	return errors.New(usage)
}

func parse(list string) (members []flease.Member, _ error) {
	for item := range strings.SplitSeq(list, ",") {
		id, addr, found := strings.Cut(item, "=")
		n, err := strconv.ParseUint(id, 10, 32)
		if !found || err != nil {
			return nil, fmt.Errorf("%q: want ID=ADDRESS", item)
		}
		members = append(members, flease.Member{ID: flease.ID(n), Addr: addr})
	}
	return members, nil
}

// candidacy takes part in elections until ctx ends.
func candidacy(ctx context.Context, cfg flease.Config, to store) error {
	node, err := flease.Start(cfg)
	if err != nil {
		return err
	}
	c := &candidate{node: node, store: to, lease: cfg.Lease, say: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	err = c.run(ctx)
	ended, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, node.Close(ended)) // which gives up what it holds
}
