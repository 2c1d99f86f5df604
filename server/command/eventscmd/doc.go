// Package eventscmd has the subcommands about what happens in a cluster.
package eventscmd
