// Package rangecmd has the subcommands about ranges of keys: who holds them, and how they move.
package rangecmd
