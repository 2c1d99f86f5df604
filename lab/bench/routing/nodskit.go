//go:build nodskit

package main

import (
	"context"
	"errors"
)

// startRing starts nothing. Half of the program's dependencies are there for dskit, so a
// build without it is much faster.
func startRing(context.Context, int) (*router, error) {
	return &router{name: nameRing}, errors.New("this program was built without it, with -tags nodskit, which builds faster")
}
