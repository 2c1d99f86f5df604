// Package realservice starts real databases for tests, each private to its test, in a temporary
// directory and on loopback. "make services" installs the programs; without them tests are skipped.
package realservice
