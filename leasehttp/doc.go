// Package leasehttp routes HTTP requests to the owners of their keys, and rejects requests
// at servers that do not own the key.
//
// A caller in Go uses a [Transport], which finds the owner for each request:
//
//	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
//		Lookup: l, // from lookup.Open
//		Key:    leasehttp.Header("X-User"),
//	})
//	client := &http.Client{Transport: transport}
//	request.Header.Set("X-User", "alice")
//	answer, err := client.Do(request) // for http://presence/status
//
// Callers in other languages use a gateway: a [Proxy] with such a Transport. The command
// "leasehold gateway" runs one. A server wraps its handler:
//
//	handler := leasehttp.Middleware(o, leasehttp.Header("X-User"))(mux)
//
// All three use the same [Source], the part of a request that has its name: a header, a
// segment of the path, a parameter of the query or a cookie. The request's key is
// leasehold.KeyOf of that name.
//
// # Retries
//
// A request is sent to the owner in the lease table. Whether it is retried depends on
// whether it may have been executed:
//
//   - The server rejects it because it does not own the key: not executed. It is retried at
//     the current owner.
//   - The server rejects it because its lease is suspended (see package owner): not executed.
//     It is retried at the same server while the table names it, until the request's
//     deadline. Without a deadline the bound below applies.
//   - The connection fails before a byte is sent: not executed, and retried.
//   - The server lost the key while it executed the request, or there is no response: it may
//     have been executed. It is retried only if it is idempotent: by its method (GET, HEAD,
//     PUT, DELETE, OPTIONS, TRACE; RFC 9110, section 9.2.2), or by an Idempotency-Key
//     header. A PUT or DELETE with If-Match, If-None-Match or If-Unmodified-Since needs the
//     header: after a successful execution, the retry would fail its condition.
//   - The response has begun: it is returned, even if the rest fails.
//
// If a server does not respond, and the key moves to another server, an idempotent request
// is sent there two seconds later: a paused or partitioned server keeps its connections.
// Other requests wait until their deadline.
//
// If one attempt may have been executed, and no later attempt has a response, the error is
// leasehold.ErrIndeterminate, whatever the error of the last attempt.
//
// The backoff and the number of attempts are those of lookup.Lookup.Do. Requests for a key
// without an owner wait within that bound.
//
// A body can be sent again if the request has a GetBody, as those of http.NewRequest do, or
// if at most 64 KiB of it were read (TransportConfig.Replay). A longer body of known length
// is sent with "Expect: 100-continue", so that a server can reject the request before it
// reads the body. It is sent after the server agrees, or after the Base's
// ExpectContinueTimeout, usually a second.
//
// # On the wire
//
// Callers and servers in other languages need to implement only these headers:
//
//   - Leasehold-Key, in a request: its key, in 16 hexadecimal digits. A gateway replaces the
//     value of its caller. Middleware derives the key from the request itself, because any
//     client can set the header. The generation of the lease is not sent: the table may be
//     stale, and only the server has the current one.
//   - Status 421 with "Leasehold-Refused: not-owner": this server does not own the key; not
//     executed. Leasehold-Key has the key that the server derived, and Leasehold-Name its
//     name, escaped as in a query; both are optional. If the key differs from that of the
//     request, caller and server use different sources, and the request is not retried.
//   - Status 400 with "Leasehold-Refused: other-key": the server found that difference; not
//     executed. Both headers are as above.
//   - Status 503 with "Leasehold-Refused: suspended" and Retry-After: this server's lease is
//     suspended; not executed. Both headers are as above. The table names this server, so
//     that the request is retried here, whatever its method.
//   - Status 503 with "Leasehold-Refused: lost": this server lost the key while it executed
//     the request. The request may have been executed.
//
// Without the header these statuses are the application's own and are returned to the
// caller.
//
// # Responses of a gateway
//
// A gateway's own responses have the header Leasehold-Error with the kind of error, and a
// body {"kind": "...", "message": "..."}:
//
//	400  invalid        the key is missing, or repeated with different values
//	408  invalid        the body was not received in time
//	413  invalid        the body is too long
//	500  invalid        gateway and servers use different sources; not executed
//	502  indeterminate  no response; the request may have been executed
//	503  no-owner       no server owns the key; not executed
//	503  not-owner      all servers tried have rejected the request; not executed
//	503  suspended      the owner waits for a manager and keeps its state; not executed
//	503  limit          too many outstanding requests to the owner; not executed
//	503  unavailable    the gateway has just started and has no table; not executed
//	503  closed         the gateway is stopping
//	504  indeterminate  no response in time; the request may have been executed
//
// If no manager has responded to the gateway for a while, no-owner and not-owner include
// that: without a manager, the keys of failed servers get no new owner. Any request may be
// retried after a 503 with Retry-After. No response contains names or addresses of servers.
//
// # Limits
//
// A Transport has at most MaxOutstanding requests to each server (PRS 3.3), counted until
// the response body is closed. Further requests fail immediately. A request keeps at most
// Replay bytes of its body; Middleware keeps at most HoldBack bytes of a response. A
// http.Server with a Proxy should have a ReadHeaderTimeout, an IdleTimeout and
// MaxHeaderBytes, but no WriteTimeout, which would end streams: ProxyConfig.Stall ends
// stalled requests.
//
// # Design
//
// The key is derived from the request as it is sent to the server, without hop-by-hop
// headers. A caller that sends "Connection: X-User", so that a proxy removes the header, is
// rejected instead of routed by a name that the server does not see. For the same reason a
// repeated name with different values is rejected: programs differ in which value they use.
//
// A gateway does not forward a server's 421. RFC 9110 permits clients to retry after it on
// another connection, whatever the method: browsers do so without backoff.
package leasehttp
