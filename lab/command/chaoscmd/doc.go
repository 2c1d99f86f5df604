// Package chaoscmd is the subcommand "chaos": real processes, real faults.
package chaoscmd
