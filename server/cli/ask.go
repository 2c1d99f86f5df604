package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// Service is the raw service of a manager, for what package admin has no method for.
type Service = leaseholdv1.AdminServiceClient

// Ask calls f with the service of one manager after the other until one answers. f must only read.
func (c *Client) Ask(ctx context.Context, f func(context.Context, Service) error) error {
	return c.Explain(ctx, c.Admin.Do(ctx, f))
}

// Within calls f with the namespace that is meant.
func Within[T any](ctx context.Context, c *Client, f func(ctx context.Context, namespace string) (T, error)) (T, error) {
	var none T
	if err := c.chooseNamespace(ctx); err != nil {
		return none, c.Explain(ctx, err)
	}
	answer, err := f(ctx, c.Namespace)
	return answer, c.Explain(ctx, err)
}

// Explain adds to an error of package admin what to do about it.
func (c *Client) Explain(ctx context.Context, err error) error {
	var (
		ended       Status
		trouble     Failed
		unreachable *admin.UnreachableError
	)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return StatusInterrupted
	case errors.As(err, &ended) || errors.As(err, &trouble):
		return err
	case errors.As(err, &unreachable):
		return Fail(fmt.Errorf("%w\n%s", err, c.whereToLook(unreachable.Reasons)))
	}
	return c.explainRefusal(err)
}
