package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/admin"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// service is the raw service of a manager, for what package admin has no method for.
type service = leaseholdv1.AdminServiceClient

// ask calls f with the service of one manager after the other until one answers. f must only read.
func (c *client) ask(ctx context.Context, f func(context.Context, service) error) error {
	return c.explain(ctx, c.admin.Do(ctx, f))
}

// within calls f with the namespace that is meant.
func within[T any](ctx context.Context, c *client, f func(ctx context.Context, namespace string) (T, error)) (T, error) {
	var none T
	if err := c.chooseNamespace(ctx); err != nil {
		return none, c.explain(ctx, err)
	}
	answer, err := f(ctx, c.namespace)
	return answer, c.explain(ctx, err)
}

// explain adds to an error of package admin what to do about it.
func (c *client) explain(ctx context.Context, err error) error {
	var (
		ended       status
		trouble     failed
		unreachable *admin.UnreachableError
	)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return statusInterrupted
	case errors.As(err, &ended) || errors.As(err, &trouble):
		return err
	case errors.As(err, &unreachable):
		return fail(fmt.Errorf("%w\n%s", err, c.whereToLook(unreachable.Reasons)))
	}
	return c.explainRefusal(err)
}
