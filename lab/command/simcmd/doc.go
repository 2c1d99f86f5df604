// Package simcmd has the subcommands of the simulators, and the benchmark of Flease.
package simcmd
