// Package jsonhttp is how the services of Live Mesh speak: HTTP and JSON, with errors that
// are for the caller what they were for the server.
//
// A request that fails is answered with a status, and with an object that has a kind and a
// message. Fields that nobody knows are refused, and not passed over. The statuses are those of package leasehttp and these:
//
//	405  the path has other methods, which Allow names
//	410  what was asked for has expired, or was lost with its server
//	413  it is too large
//	422  it is no feed (package feed)
//	429  there is no room, or too many ask: nothing was done
package jsonhttp
