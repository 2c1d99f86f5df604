//go:build !linux

package nemesis

import "context"

// starve can be done on Linux alone, as can all of this.
func starve(context.Context, *Nemesis, Strike) (string, func() error, error) { return "", nil, nil }
