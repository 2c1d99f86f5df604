// Command leasehold is Leasehold's one program: whatever there is to run, is a
// subcommand of it. "leasehold help" says what exists.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	afterFirst(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// oneSignal is for how long signals count as one: timeout(1) sends two, to the process and to its
// group.
const oneSignal = 500 * time.Millisecond

// afterFirst has the first Ctrl-C ask, and get a summary of what was done so far. The second finds
// no handler any more and ends the process at once.
func afterFirst(ctx context.Context, stop func()) {
	context.AfterFunc(ctx, func() { time.AfterFunc(oneSignal, stop) })
}
