// Package locks contains lock services as contestants: etcd, used in several ways, with its
// server processes and with clients that acquire locks. A [Contest] gives services turns.
package locks

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/lab/bench/proc"
	"github.com/leasehold-dev/leasehold/lab/bench/report"
)

// A Turn is a number of acquired leases and the time from the first request to the last reply.
type Turn struct {
	Leases int
	Took   time.Duration
	CPU    time.Duration // of all servers and clients
}

// Rate returns leases per second.
func (t Turn) Rate() float64 {
	if t.Took <= 0 {
		return 0
	}
	return float64(t.Leases) / t.Took.Seconds()
}

// Effort returns the CPU time per lease, in microseconds.
func (t Turn) Effort() float64 {
	if t.Leases == 0 {
		return 0
	}
	return float64(t.CPU) / float64(time.Microsecond) / float64(t.Leases)
}

// A Rate is the summary of turns, in leases per second.
type Rate struct {
	report.Summary
	Effort float64 // the median CPU time per lease, in microseconds
}

// RateOf returns the summary of turns; of none, zeros.
func RateOf(turns []Turn) Rate {
	return Rate{report.SummariseOf(turns, Turn.Rate), report.SummariseOf(turns, Turn.Effort).Median}
}

// A Service grants leases. It is not safe for concurrent use.
type Service interface {
	// Acquire acquires n leases, or as many as possible within a limit, on new resources
	// whose names begin with name.
	Acquire(ctx context.Context, n int, name string) (Turn, error)
	// Release releases the leases of the last turn. It is not measured.
	Release(ctx context.Context) error
}

// An Entry is a service with its name in tables and its batch size.
type Entry struct {
	Name  string
	Batch int
	Service
}

// A Contest gives services turns.
type Contest struct {
	Length  time.Duration // minimum of a turn; 0 is one batch
	Step    func(format string, args ...any)
	batches int // so far, for unique names
}

// maxBatches bounds a turn.
const maxBatches = 1000

// Rounds gives each service a turn in every round, and returns the turns by entry.
func (c *Contest) Rounds(ctx context.Context, all []Entry, rounds int, what string) ([][]Turn, error) {
	turns := make([][]Turn, len(all))
	err := report.Rounds(ctx, rounds, len(all), func(round, i int) error {
		t, err := c.turn(ctx, all[i])
		if err != nil {
			return err
		}
		turns[i] = append(turns[i], t)
		c.Step("%s, round %d of %d: %s/s %s", what, round+1, rounds, report.Thousands(t.Rate()), all[i].Name)
		return nil
	})
	return turns, err
}

// turn acquires batches until the turn is over. Releases are not measured.
func (c *Contest) turn(ctx context.Context, e Entry) (sum Turn, err error) {
	for i := 0; i < maxBatches && (i == 0 || sum.Took < c.Length); i++ {
		c.batches++
		t, err := e.Acquire(ctx, e.Batch, fmt.Sprintf("b%d", c.batches))
		if err == nil {
			err = e.Release(ctx)
		}
		if ctx.Err() != nil {
			return Turn{}, context.Cause(ctx)
		}
		if err != nil {
			return Turn{}, fmt.Errorf("%s: %w", e.Name, err)
		}
		sum = Turn{sum.Leases + t.Leases, sum.Took + t.Took, sum.CPU + t.CPU}
	}
	return sum, nil
}

// Measure measures the duration and the CPU time of acquire, which returns the number of leases.
// servers returns the CPU time of the servers.
func Measure(servers func() (time.Duration, error), acquire func() (leases int, err error)) (Turn, error) {
	before, err := servers()
	if err != nil {
		return Turn{}, err
	}
	before += proc.CPUTime()
	begin := time.Now()
	n, err := acquire()
	took := time.Since(begin)
	if err != nil {
		return Turn{}, err
	}
	after, err := servers()
	return Turn{Leases: n, Took: took, CPU: after + proc.CPUTime() - before}, err
}

// answerLimit is the timeout of a request.
const answerLimit = 90 * time.Second

// Clients is the number of clients of a lock service.
const Clients = 256

// Swarm is the clients of a lock service, which share a batch: an idle client takes the next
// name.
type Swarm struct {
	Servers func() (time.Duration, error) // the CPU time of the servers
	Limit   time.Duration                 // no acquisition starts later
}

// Run acquires leases on name-0, name-1 and so on until there are n, or until the limit.
func (s Swarm) Run(ctx context.Context, n int, name string, acquire func(ctx context.Context, client int, resource string) error) (Turn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Limit+answerLimit, fmt.Errorf("no reply for a client in %v", answerLimit))
	defer cancel()
	return Measure(s.Servers, func() (int, error) {
		var next, done atomic.Int64
		begin := time.Now()
		err := proc.Each(Clients, func(client int) error {
			for time.Since(begin) < s.Limit {
				i := next.Add(1) - 1
				if i >= int64(n) {
					return nil
				}
				if err := acquire(ctx, client, Resource(name, int(i))); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
		return int(done.Load()), err
	})
}

// Resource returns the name of the i-th resource of a batch.
func Resource(name string, i int) string { return fmt.Sprintf("%s-%06d", name, i) }
