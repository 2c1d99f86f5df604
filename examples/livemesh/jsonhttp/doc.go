// Package jsonhttp is what the services of Live Mesh have in common: HTTP and JSON, about
// one name per request, and errors of package leasehold on both sides.
//
// The second segment of a path is the name, and what requests are routed by: see [Key]. A
// failed request is answered as package leasehttp does, with a kind and a message, and with
// its statuses or these:
//
//	405  the path has other methods, which Allow lists
//	410  a subscription that has expired, or was lost with its server
//	413  it is too large
//	422  it is no feed (package feed)
//	429  there is no room, or too many requests are under way: nothing was done
package jsonhttp
