// Package quick selects the tests of a run with -short. It is for packages whose tests take minutes:
// TestMain selects the tests for "make test", and "make check" runs all. It has no effect with -run or
// -skip.
package quick

import (
	"flag"
	"testing"
)

// Only limits a short run to the tests that match a pattern.
func Only(pattern string) { choose("test.run", pattern) }

// Without skips the tests that match a pattern in a short run.
func Without(pattern string) { choose("test.skip", pattern) }

func choose(name, pattern string) {
	flag.Parse()
	if !testing.Short() || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return
	}
	if err := flag.Set(name, pattern); err != nil {
		panic(err) // flags of package testing
	}
}
