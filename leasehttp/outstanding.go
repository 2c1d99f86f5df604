package leasehttp

import (
	"sync"

	"github.com/leasehold-dev/leasehold"
)

// outstanding bounds how many requests are under way to each server (PRS 3.3):
// one that is slow must not tie up all that its callers have, and be sent ever
// more. It remembers only servers that have some, so that servers which come and
// go leave nothing behind.
type outstanding struct {
	most int

	mu sync.Mutex
	at map[string]int // by address; none is 0
}

func newOutstanding(most int) *outstanding {
	return &outstanding{most: most, at: make(map[string]int)}
}

// begin counts a request, or refuses it at once: a queue here would only hide
// from callers that they ask for too much.
func (o *outstanding) begin(addr string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at[addr] >= o.most {
		return leasehold.Errorf("send", leasehold.ErrLimit, addr, "%d requests are under way to the owner of the key, as many as may be", o.most)
	}
	o.at[addr]++
	return nil
}

func (o *outstanding) end(addr string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at[addr]--; o.at[addr] == 0 {
		delete(o.at, addr)
	}
}
