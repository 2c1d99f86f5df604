package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

// OrderOptions are the flags of commands that move keys.
type OrderOptions struct {
	DryRun    bool
	loseState bool
	NoWait    bool
	Within    time.Duration
}

func AddOrderFlags(cmd *cobra.Command) *OrderOptions {
	o := &OrderOptions{}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would move where")
	cmd.Flags().BoolVar(&o.loseState, "lose-state", false, "go on although state is lost")
	return o
}

// CanWait adds the flags of commands that wait until it is done.
func (o *OrderOptions) CanWait(cmd *cobra.Command) *OrderOptions {
	cmd.Flags().BoolVar(&o.NoWait, "no-wait", false, "do not wait until it is done")
	cmd.Flags().DurationVar(&o.Within, "within", 0, "how long to wait until it is done (default as long as it takes)")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "within")
	cmd.MarkFlagsMutuallyExclusive("no-wait", "dry-run")
	return o
}

func (o *OrderOptions) Validate() error {
	if o.Within < 0 {
		return fmt.Errorf("--within %v: want a time above 0", o.Within)
	}
	return nil
}

// Options are those of package admin.
func (o *OrderOptions) Options() admin.OrderOptions {
	return admin.OrderOptions{DryRun: o.DryRun, LoseState: o.loseState}
}

// Waiting returns a context for the time that somebody wants to wait.
func (o *OrderOptions) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Within > 0 {
		return context.WithTimeout(ctx, o.Within)
	}
	return context.WithCancel(ctx)
}

// A waiting shows how far an order is that a manager carries out.
type waiting struct {
	began time.Time
	*console.Progress
}

func NewWaiting(c *Client) *waiting {
	return &waiting{time.Now(), console.NewProgress(c.Errs, c.JSON)}
}

func (w *waiting) Report(share float64, text string, trouble error) {
	if trouble != nil {
		text = console.Bad("no manager answers, trying again") + "; " + text
	}
	w.Progress.Report(time.Since(w.began), share, text)
}
