// Package ownercmd has the subcommands about owners.
package ownercmd
