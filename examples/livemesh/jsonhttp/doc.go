// Package jsonhttp is the common code of the services of Live Mesh: HTTP and JSON, one name per
// request, and errors of package leasehold on both sides.
//
// The second segment of a path is the name. Requests are routed by it: see [Key]. Failed requests
// have the response of package leasehttp, with a kind and a message, and its statuses or these:
//
//	405  the path has other methods: see Allow
//	410  a subscription has expired, or was lost with its server
//	413  too large
//	422  not a feed (package feed)
//	429  no room, or too many concurrent requests: nothing was done
package jsonhttp
