// Command sbom says what a binary is made of: every module that was linked into it, with its
// version and checksum, and how it was built. It reads that from the binary itself, where the
// linker has put it, as "go version -m" does: so it is about what runs, and not about what
// somebody meant to build.
//
//	sbom bin/leasehold          as CycloneDX 1.6, JSON, for scanners
//	sbom -table bin/leasehold   for people
//
// The same binary always gives the same bytes: there is no time and no random number in it.
package main
