// Package statuscmd is the subcommand "status".
package statuscmd
