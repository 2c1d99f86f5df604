// Package doctorcmd is the subcommand "doctor": it examines a running cluster.
package doctorcmd
