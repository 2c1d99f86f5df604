// Package fleet runs many owners in one process, each with the owner library and its own connections. Unlike those of
// package crowd they reconnect exactly as an application's owners do, so that an outage of the managers can be
// measured with them.
package fleet
