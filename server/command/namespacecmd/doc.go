// Package namespacecmd is the subcommand "namespace".
package namespacecmd
