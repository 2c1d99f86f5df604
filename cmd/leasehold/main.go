// Command leasehold is Leasehold's one program: whatever there is to run, is a
// subcommand of it. "leasehold help" says what exists.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first Ctrl-C asks, and gets a summary of what was done so far. The
	// second finds no handler any more and ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
