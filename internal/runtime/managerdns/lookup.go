package managerdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
)

// Lookup resolves targets once. It returns their addresses in the order of the targets, without duplicates, and an error
// only if there are none.
func Lookup(ctx context.Context, targets []string, r Resolver) (addrs []string, _ error) {
	if r == nil {
		r = net.DefaultResolver
	}
	var errs []error
	for _, text := range targets {
		t, err := parse(text, "manager-1:7400")
		if err != nil {
			return nil, err
		}
		bounded, cancel := context.WithTimeout(ctx, timeout)
		found, err := t.resolve(bounded, r)
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", text, err))
		}
		for _, addr := range found {
			if !slices.Contains(addrs, addr) {
				addrs = append(addrs, addr)
			}
		}
	}
	if len(addrs) == 0 {
		return nil, errors.Join(errs...)
	}
	return addrs, nil
}

// Dynamic reports whether a target is a name that has to be resolved.
func Dynamic(text string) bool {
	t, err := parse(text, "")
	return err == nil && t.kind != fixed
}
