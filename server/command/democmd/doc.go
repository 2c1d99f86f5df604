// Package democmd is the subcommand "demo": a cluster of processes on this computer, and what happens to it.
package democmd
