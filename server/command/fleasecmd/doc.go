// Package fleasecmd is the subcommand "flease": leases without managers.
package fleasecmd
