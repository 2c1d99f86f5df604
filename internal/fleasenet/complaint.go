package fleasenet

import (
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/machine/flease"
)

// complainEvery is how often packets of a peer that are not authentic are mentioned
// in the log.
const complainEvery = time.Minute

// complaints are about peers whose packets are not authentic: as a rule they were
// started with another key, which nothing else would tell anybody.
type complaints struct {
	log   *slog.Logger
	names map[flease.Process]string // of peers

	mu   *sync.Mutex
	said map[flease.Process]complaint
}

// A complaint is when a peer was mentioned last, and how many packets have come
// since.
type complaint struct {
	at      time.Time
	packets int
}

func newComplaints(c *Config) complaints {
	names := make(map[flease.Process]string)
	for _, p := range c.Peers {
		names[p.Process] = p.name()
	}
	return complaints{log: c.Logger, names: names, mu: new(sync.Mutex), said: make(map[flease.Process]complaint)}
}

// complain mentions a packet that is not authentic, and claims to be from a peer.
func (r *reader) complain(peer flease.Process) {
	c := &r.complaints
	name, known := c.names[peer]
	if !known || c.log == nil {
		return
	}
	c.mu.Lock()
	last := c.said[peer]
	now := time.Now()
	due := last.at.IsZero() || now.Sub(last.at) >= complainEvery
	if due {
		c.said[peer] = complaint{at: now}
	} else {
		last.packets++
		c.said[peer] = last
	}
	c.mu.Unlock()
	if due {
		c.log.Warn("packets of a member are not authentic, and are dropped: has it another key?", "of", name, "from", r.from(), "since_last", last.packets)
	}
}
