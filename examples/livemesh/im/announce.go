package im

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	maxWaiting   = 1024            // announcements
	announceTime = 5 * time.Second // is how long one may take
)

// An announcement is what others are told of a user.
type announcement struct{ user, text string }

// An announcer tells others of changes, while requests go on.
type announcer struct {
	tell    func(ctx context.Context, user, text string) error
	log     *slog.Logger
	stopped context.CancelFunc
	waiting chan announcement
	running sync.WaitGroup
}

func newAnnouncer(cfg Config) *announcer {
	ctx, cancel := context.WithCancel(context.Background())
	a := &announcer{tell: cfg.Announce, log: cfg.Logger, stopped: cancel, waiting: make(chan announcement, maxWaiting)}
	a.running.Go(func() { a.run(ctx) })
	return a
}

// add announces that a user has a status. It does not wait.
func (a *announcer) add(user, status string) {
	if a.tell == nil {
		return
	}
	select {
	case a.waiting <- announcement{user, "is now " + status}:
	default:
		a.log.Warn("not announced: too many wait already", "user", user, "status", status)
	}
}

func (a *announcer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-a.waiting:
			telling, cancel := context.WithTimeout(ctx, announceTime)
			if err := a.tell(telling, next.user, next.text); err != nil {
				a.log.Warn("not announced", "user", next.user, "text", next.text, "err", err)
			}
			cancel()
		}
	}
}

// stop drops what is waiting.
func (a *announcer) stop() {
	a.stopped()
	a.running.Wait()
}
