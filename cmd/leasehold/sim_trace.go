package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/leasehold-dev/leasehold/internal/sim"
)

// runTrace shows what happens in one world, and then how it went.
func (o *simOptions) runTrace(ctx context.Context, out io.Writer) error {
	buffered := bufio.NewWriterSize(out, 1<<16)
	r := runReadably(ctx, o.config, o.first, buffered)
	if r != nil {
		_, _ = buffered.WriteString(o.traceVerdict(r)) // Flush has the error
	}
	if err := buffered.Flush(); err != nil {
		return failed{fmt.Errorf("writing the trace: %w", err)}
	}
	switch {
	case r == nil:
		return statusInterrupted
	case r.Violation != nil:
		return statusViolated
	case o.planted != "":
		return statusSurvived
	}
	return nil
}

// traceVerdict is what the trace ends with.
func (o *simOptions) traceVerdict(r *sim.Result) string {
	numbers := fmt.Sprintf("%v simulated, %s events, %s messages, trace hash %s\n",
		r.Simulated, grouped(r.Events), grouped(r.Messages), hashText(r.Digest()))
	switch {
	case r.Violation != nil:
		return "\n" + o.failure(r.Seed, r.Violation).text() + numbers
	case o.planted != "":
		return "\n" + o.survived() + numbers
	}
	return fmt.Sprintf("\n%s in the world of seed %d\n", good("no violation"), r.Seed) + numbers
}

// runReadably runs one world, and returns nil if ctx ended or out failed
// before the world did.
//
// A world cannot be asked to stop, and one of a simulated day writes for long.
// But nothing of it outlives its goroutine, so that the goroutine may end in
// the middle of it: when it next wants to say something.
func runReadably(ctx context.Context, cfg sim.Config, seed uint64, out io.Writer) (r *sim.Result) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r = sim.Run(cfg, seed, writerFunc(func(p []byte) (int, error) {
			n, err := out.Write(p)
			if err != nil || ctx.Err() != nil {
				runtime.Goexit()
			}
			return n, nil
		}))
	}()
	<-done
	return r
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
