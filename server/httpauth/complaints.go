package httpauth

import (
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Complaints write down what was refused to people that nobody knows: the first of them
// one by one, and when they do not end one a second, which says how many there were
// besides. Its methods may be called from many goroutines at once.
type Complaints struct {
	logger *slog.Logger
	often  *rate.Limiter
	silent atomic.Int64
}

// NewComplaints returns complaints that go to a logger.
func NewComplaints(logger *slog.Logger) *Complaints {
	const atOnce = 20
	return &Complaints{logger: logger, often: rate.NewLimiter(rate.Every(time.Second), atOnce)}
}

// Tell writes one down. What is told must have no secret in it.
func (c *Complaints) Tell(text string, attrs ...any) {
	if !c.often.Allow() {
		c.silent.Add(1)
		return
	}
	if more := c.silent.Swap(0); more > 0 {
		attrs = append(attrs, "not told before", more)
	}
	c.logger.Warn(text, attrs...)
}
