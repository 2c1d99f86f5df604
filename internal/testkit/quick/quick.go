// Package quick chooses the tests of a run with -short. It is for packages whose tests take minutes:
// their TestMain says which tests "make test" runs, and "make check" runs all. With -run or -skip, the
// caller has chosen.
package quick

import (
	"flag"
	"testing"
)

// Only has a short run do nothing but the tests that match a pattern.
func Only(pattern string) { choose("test.run", pattern) }

// Without has a short run leave out the tests that match a pattern.
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
