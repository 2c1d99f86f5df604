// Package daemon is what long-running subcommands of leasehold share: health and metrics pages,
// profiles, traces, the messages to systemd, and the version of the build.
package daemon
