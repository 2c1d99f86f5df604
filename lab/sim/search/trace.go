package search

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/server/console"
)

func (s *Job) runTrace(ctx context.Context, out io.Writer) (Outcome, error) {
	buffered := bufio.NewWriterSize(out, 1<<16)
	r := s.runReadably(ctx, buffered)
	if r != nil {
		_, _ = buffered.WriteString(s.traceVerdict(r)) // Flush has the error
	}
	if err := buffered.Flush(); err != nil {
		return Passed, fmt.Errorf("writing the trace: %w", err)
	}
	if r == nil {
		return Interrupted, nil
	}
	return s.outcome(r.Violation != nil, false), nil
}

// traceVerdict returns the end of the trace.
func (s *Job) traceVerdict(r *engine.Result) string {
	numbers := fmt.Sprintf("%v simulated, %s events, %s messages, trace hash %s\n",
		r.Simulated, console.Grouped(r.Events), console.Grouped(r.Messages), hashText(r.Digest()))
	switch {
	case r.Violation != nil:
		return "\n" + s.failure(r.Seed, r.Violation).text() + numbers
	case s.Planted != "":
		return "\n" + s.survived() + numbers
	}
	kind := ""
	if r.Kind != "" {
		kind = " (" + r.Kind + ")"
	}
	return fmt.Sprintf("\n%s in the world of seed %d%s\n", console.Good("no violation"), r.Seed, kind) + numbers
}

// runReadably runs one world, and returns nil if ctx ended or out failed before the end of the world.
//
// A world cannot be cancelled, and the trace of a simulated day is long. So its goroutine exits in the next
// write of the trace. This is safe, because nothing outside of the goroutine uses the world.
func (s *Job) runReadably(ctx context.Context, out io.Writer) (r *engine.Result) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r = s.Simulation.Run(s.First, writerFunc(func(p []byte) (int, error) {
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
