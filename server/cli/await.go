package cli

import (
	"time"

	"github.com/leasehold-dev/leasehold/server/console"
)

// A waiting shows how far an order is that a manager carries out.
type waiting struct {
	began time.Time
	*console.Progress
}

func NewWaiting(c *Client) *waiting {
	return &waiting{time.Now(), console.NewProgress(c.Errs, c.JSON)}
}

// Report says how far it is, and why nothing newer is known, if so.
func (w *waiting) Report(share float64, text string, trouble error) {
	if trouble != nil {
		text = console.Bad("no manager answers, trying again") + "; " + text
	}
	w.Progress.Report(time.Since(w.began), share, text)
}
