// Package jsonhttp is the common code of the services of Live Mesh: HTTP and JSON, one name per
// request, and errors of package leasehold on both sides.
//
// The second segment of a path is the name. Requests are routed by it: see [Key]. Failed requests
// have the statuses and the response of package leasehttp, with a kind and a message.
package jsonhttp
