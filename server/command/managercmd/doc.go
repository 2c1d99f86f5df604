// Package managercmd is the subcommand "manager": it runs a manager with its store and pages, and looks after a group of managers.
package managercmd
