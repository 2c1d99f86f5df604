// Package pkicmd has the subcommands that make certificates and tokens.
package pkicmd
