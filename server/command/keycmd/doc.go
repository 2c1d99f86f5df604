// Package keycmd has the subcommands about one key.
package keycmd
