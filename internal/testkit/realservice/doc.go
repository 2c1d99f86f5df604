// Package realservice starts databases for tests: real ones, each private to the test that
// asks for it, in a temporary directory and on loopback.
//
// They are Debian's packages, or whatever else has the programs: make services
// installs them where it can, and make test does so first. Where a program is
// missing the tests that need it are skipped, and say how to get it.
package realservice
