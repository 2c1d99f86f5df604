// Package topcmd is the subcommand "top": a live view of a cluster in a terminal.
package topcmd
