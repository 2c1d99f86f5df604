// Package leasehttp routes HTTP requests to the servers that own their keys, and
// keeps servers from answering for keys that they do not own.
//
// A caller in Go has a [Transport], which finds the server of each request:
//
//	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
//		Lookup: l, // from lookup.Open
//		Key:    leasehttp.Header("X-User"),
//	})
//	client := &http.Client{Transport: transport}
//	request.Header.Set("X-User", "alice")
//	answer, err := client.Do(request) // for http://presence/status
//
// Callers in other languages have a gateway in its place, which is a [Proxy] with
// such a Transport; the command "leasehold gateway" runs one. A server wraps its
// handler:
//
//	handler := leasehttp.Middleware(o, leasehttp.Header("X-User"))(mux)
//
// What all three have in common is the [Source], which says where in a request the
// name is that it is about: a header, a segment of the path, a parameter of the
// query or a cookie. The request's key is leasehold.KeyOf of that name.
//
// # What is sent again
//
// A request is sent to the server that the table names. What becomes of it then
// depends on what is known about whether it was carried out:
//
//   - The server refuses it, because it does not own the key: nothing was done. It
//     is sent again, to the owner of that moment.
//   - The server refuses it, because its lease is suspended (see package owner): nothing
//     was done. It is sent again, to the same server while the table names it, until the
//     request's deadline. Without a deadline the bound below holds.
//   - There is no connection to the server, and nothing was sent: likewise.
//   - The server says that it lost the key while it worked, or there is no answer:
//     it may have been carried out. It is sent again only if that does no harm: if
//     its method is idempotent (GET, HEAD, PUT, DELETE, OPTIONS, TRACE; RFC 9110,
//     section 9.2.2), or it has an Idempotency-Key header. A PUT or DELETE with
//     If-Match, If-None-Match or If-Unmodified-Since needs the latter: a second time
//     it would be refused, because it was carried out the first time.
//   - An answer has begun: that is the answer, whatever becomes of the rest.
//
// An idempotent request whose server does not answer, while the key goes to another
// server, is sent there two seconds later: servers that are stopped, or cut off, keep
// their connections. Any other waits for as long as its caller does.
//
// If an attempt may have been carried out, and none that follow has an answer, the
// error is leasehold.ErrIndeterminate, whatever ended the last of them.
//
// There is a backoff between attempts and a bound on their number, those of
// lookup.Lookup.Do. While no server owns a key its requests wait, within that bound.
//
// A body is sent again if the request has a GetBody, as those of
// http.NewRequest have, or if no more than 64 KiB of it were read
// (TransportConfig.Replay). One that is known to be longer is announced with
// "Expect: 100-continue", and sent when the server has agreed to have it, or has said
// nothing for the Base's ExpectContinueTimeout, usually a second: servers refuse before
// they read.
//
// # On the wire
//
// These headers are all that callers and servers need to agree on, so that either may
// be written in any language:
//
//   - Leasehold-Key, in a request: its key, in 16 hexadecimal digits. A gateway
//     replaces what its callers say. Middleware takes the key from the request itself,
//     since it cannot know who has set the header. The generation of the lease is
//     not sent: the table may be behind, and only the server knows.
//   - Status 421 with "Leasehold-Refused: not-owner": this server does not own the
//     key, and has done nothing. In Leasehold-Key is the key that it looked for, and in
//     Leasehold-Name the name of that, escaped as in a query. Both may be left out. If
//     it is another key than that of the request, then caller and server take it from
//     different places, and the request is not sent again.
//   - Status 400 with "Leasehold-Refused: other-key": this server found that out
//     itself, and has done nothing. Both headers are as above.
//   - Status 503 with "Leasehold-Refused: suspended" and Retry-After: this server's lease is
//     suspended, and it has done nothing. The key is told as above. The table names this
//     server, so that the request is sent here again, whatever its method.
//   - Status 503 with "Leasehold-Refused: lost": this server lost the key while it
//     worked. The request may have been carried out.
//
// Without the header these statuses are the application's own and reach the caller.
//
// # What callers of a gateway see
//
// What a gateway answers by itself has the header Leasehold-Error with the kind of
// error, and a body {"kind": "...", "message": "..."}:
//
//	400  invalid        the key is missing, or there twice with different values
//	408  invalid        the body did not come
//	413  invalid        the body is too long
//	500  invalid        gateway and servers take the key from different places; nothing was done
//	502  indeterminate  there is no answer; it may have been carried out
//	503  no-owner       no server owns the key at present; nothing was done
//	503  not-owner      all servers that were asked have refused; nothing was done
//	503  suspended      the owner waits for a manager and keeps its state; nothing was done
//	503  limit          too many requests are under way to the owner; nothing was done
//	503  unavailable    the gateway has just begun, and knows of no servers; nothing was done
//	503  closed         the gateway is stopping
//	504  indeterminate  there was no answer in time; it may have been carried out
//
// The first two of the 503 say so if no manager has answered the gateway for a while:
// the keys of failed servers get no new owner then. After a 503 with Retry-After any request
// may be sent again. No answer contains the names or addresses of servers.
//
// # Bounds
//
// To each server there are at most MaxOutstanding requests under way from one
// Transport (PRS 3.3), counted until the answer has been read. More fail at once. A
// request keeps at most Replay bytes; Middleware keeps at most HoldBack bytes of an
// answer. A http.Server around a Proxy should have a ReadHeaderTimeout, an IdleTimeout
// and MaxHeaderBytes, and no WriteTimeout, which would end streams; ProxyConfig.Stall
// ends what does not move.
//
// # DESIGN
//
// The key is taken from the request as it is sent to the server, after everything that
// ends at the gateway has been removed. So a caller that says "Connection: X-User", to
// have a proxy remove the header, is refused, and not routed by a name that the server
// does not see. For the same reason a name that is there twice is refused: programs
// differ in which one they take.
//
// A gateway does not pass on a 421 that is ours. RFC 9110 lets clients repeat a request after it,
// whatever its method, on another connection: browsers do so at once, and not through
// any backoff of ours.
package leasehttp
