package registers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold"
)

// A Chronicle is a history of requests about registers, and of their losses. It may be
// written by many goroutines at once.
type Chronicle struct {
	names []string
	begun time.Time

	mu    sync.Mutex
	fault int64 // when the last fault began
	all   []porcupine.Operation
}

// NewChronicle begins a history of registers with these names.
func NewChronicle(names ...string) *Chronicle {
	return &Chronicle{names: names, begun: time.Now()}
}

// History returns what has happened.
func (c *Chronicle) History() []porcupine.Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Fault says that something is done now that may lose registers.
func (c *Chronicle) Fault() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = c.now()
}

func (c *Chronicle) now() int64 { return time.Since(c.begun).Nanoseconds() }

// Lost notes that registers were lost, at some time since the last fault began.
func (c *Chronicle) Lost(loss leasehold.Loss) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names {
		if loss.Range.Contains(leasehold.KeyOf(name)) {
			c.all = append(c.all, porcupine.Operation{
				ClientId: -1, Call: c.fault, Return: c.now(), Input: Request{Do: Lose, Name: name}, Output: Answer{},
			})
		}
	}
}

// never is when something returns of which nobody knows whether it was done.
const never = 1 << 62

// Ask asks about registers, again and again, and notes what came of it. What request
// returns [leasehold.Unavailable] for may have been carried out; other errors say that it
// was not. It may change the request to what it has tried: a swap that got no further than
// its reading is a reading.
func (c *Chronicle) Ask(client, times int, every time.Duration, random *rand.Rand, request func(*Request) (Answer, error)) {
	for i := range times {
		time.Sleep(time.Duration(random.Int64N(int64(2 * every))))
		in := Request{Do: random.IntN(3), Name: c.names[random.IntN(len(c.names))], Value: fmt.Sprintf("%d.%d", client, i)}
		call := c.now()
		out, err := request(&in)
		o := porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: c.now()}
		switch {
		case errors.Is(err, leasehold.Unavailable) && in.Do != Read:
			o.Output, o.Return = Answer{Unknown: true}, never
		case err != nil:
			continue
		}
		c.mu.Lock()
		c.all = append(c.all, o)
		c.mu.Unlock()
	}
}
