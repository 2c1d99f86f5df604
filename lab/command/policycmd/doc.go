// Package policycmd is the subcommand "policy": it tries assignment policies on workloads.
package policycmd
