package nemesis

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// How a flood of connections comes.
const (
	floodWide   = 30 // at a time
	floodDial   = time.Second
	floodLinger = 500 * time.Millisecond
)

// flood has many connect to a manager and say nothing, or nonsense, and go again.
func flood(ctx context.Context, n *Nemesis, s Strike) (string, func() error, error) {
	m := anyManager(ctx, n, s)[0]
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range floodWide {
		all.Go(func() {
			random := rand.New(rand.NewPCG(s.Pick, uint64(i)))
			for ctx.Err() == nil {
				n.knock(ctx, m.Addr, random)
			}
		})
	}
	return m.Name, func() error {
		stop()
		all.Wait()
		return nil
	}, nil
}

// knock is one connection. What comes of it does not matter.
func (n *Nemesis) knock(ctx context.Context, addr string, random *rand.Rand) {
	dialing, cancel := context.WithTimeout(ctx, floodDial)
	defer cancel()
	conn, err := n.Cluster.Operator.Dial(dialing, "tcp", addr)
	if err != nil {
		wait(ctx, floodLinger/10)
		return
	}
	if random.IntN(2) == 0 {
		_, _ = conn.Write(make([]byte, random.IntN(1000)))
	}
	wait(ctx, time.Duration(random.Int64N(int64(floodLinger))))
	_ = conn.Close()
}
