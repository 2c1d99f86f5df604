// Package agentcmd is the subcommand "agent": the lookup library for other languages, as a local process.
package agentcmd
