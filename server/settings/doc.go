// Package settings fills the flags of a command from the environment and from
// a configuration file.
//
// There is one rule, so that nobody has to look anything up: what is the flag
// --data-dir is the variable LEASEHOLD_DATA_DIR and the key data-dir of the
// file. A flag prevails over the environment, the environment over the file,
// the file over the default.
//
// Whatever nobody reads is an error: a setting that was mistyped and then
// ignored is found out much later, and not where it was written. The names are
// those of the whole program, not of one command, so that one file and one
// environment serve all commands.
package settings
