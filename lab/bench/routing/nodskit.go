//go:build nodskit

package main

import (
	"context"
	"errors"
)

// startRing has nothing to start. Half of what this program is made of is there for dskit:
// who is in a hurry builds it without.
func startRing(context.Context, int) (*router, error) {
	return &router{name: nameRing}, errors.New("this program was built without it, which is quicker: go run . has it")
}
