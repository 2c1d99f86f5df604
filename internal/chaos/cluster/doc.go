// Package cluster is a whole Leasehold of real processes, each at a host of its own:
// managers and their store, owners, callers.
package cluster
