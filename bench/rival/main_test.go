package main

import "testing"

func TestPlain(t *testing.T) {
	const said = "go: module a/b: reading https://proxy.example/a/b/@v/list: 403 Forbidden\n\tserver response: not available.\n"
	if got, want := plain(said), "go: module a/b: 403 Forbidden server response: not available."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
