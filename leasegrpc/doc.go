// Package leasegrpc routes gRPC calls to the owners of their keys.
//
// A caller connects to a namespace and sets the key of each call. The call is sent to the
// owner, and retried if the server is no longer the owner:
//
//	conn, err := leasegrpc.NewClient(ctx, "leasehold://m1:7400,m2:7400/presence", leasegrpc.Config{},
//		grpc.WithTransportCredentials(insecure.NewCredentials()))
//	...
//	answer, err := pb.NewPresenceClient(conn).Update(ctx, request, leasegrpc.WithKey("alice"))
//
// With [DialOptions] and a target without managers, leasehold:///presence, a connection uses
// an open lookup. [Config.Methods] can name the field of a method's request that has the key.
//
// A server rejects calls for keys that it does not own. Its handlers get their lease from the
// context, with [Lease]:
//
//	options, err := leasegrpc.ServerOptions(o, leasegrpc.ServerConfig{})
//	...
//	server := grpc.NewServer(options...)
//
// # Servers
//
// Before a handler is called, the server waits for a key whose move to it is in progress
// (owner.Owner.Await) and checks that it owns the key (Check). The response is sent only if
// the lease was held without a gap (Held). These are the steps 1 and 4 of a server's duties
// in package leasehold. The handler does the rest, for example with package leasemap.
//
// A handler that returns an error of kind [leasehold.ErrNotOwner] rejects the call like the
// interceptor: nothing may have been executed, and the caller retries at the current owner.
// After [leasehold.ErrSuspended] the caller retries at the same server. Other errors with a
// kind of package leasehold keep it on the wire. An error that is a gRPC status is sent
// unchanged, so that the status of another service is not taken for the handler's own.
//
// When the lease ends, the context of a stream ends, and messages cannot be sent; the status
// tells the caller. A handler that is blocked in Recv gets the error with the next request,
// unless it also waits for the context. A suspended lease (see package owner) has not ended:
// the context continues, but messages cannot be sent until the lease is resumed.
//
// Metadata must not contain state: headers and trailers of a handler are sent with the
// status, even if the lease has ended. A stream's SendHeader fails without the lease, like
// its messages; grpc.SendHeader of a unary handler does not.
//
// One gRPC server may serve several namespaces, with the methods of the others in
// [ServerConfig.Owners]. Callers have a connection for each:
//
//	options, err := leasegrpc.ServerOptions(users, leasegrpc.ServerConfig{
//		Owners: map[string]*owner.Owner{"/game.Rooms/": rooms},
//	})
//
// # Retries
//
// Calls are retried like [lookup.Lookup.Do]: after a backoff, or as soon as the key has a new
// owner; at most [Config.Attempts] times, and until the call's deadline. Whether a call is
// retried depends on the result of the last attempt:
//
//   - The key had no owner, or the connection failed: not sent, and retried.
//   - The server rejected it: not executed, and retried. If the server's lease is suspended,
//     it is retried until the call's deadline.
//   - The connection broke before the response, the lease ended during the call, or the
//     server did not respond while the key moved: it may have been executed. It is retried if
//     it is idempotent, by [Method.Idempotent] or [WithIdempotent]. Otherwise it fails with
//     ErrIndeterminate.
//   - The application returned an error: this is the result.
//
// A call with one request and a stream of responses is retried in the same way until the
// first response. A call with a stream of requests is not retried once it is open: the
// application opens another one.
//
// A paused or partitioned server keeps its connections. So an attempt ends one to two seconds
// after the table assigned its key to another server. A stream ends then if an operation waits
// for the server; responses that have arrived can be received later.
//
// Errors are gRPC statuses. Errors of this package also have a kind:
// errors.Is(err, leasehold.ErrNoOwner) works. A call that fails with ErrNoOwner, ErrNotOwner,
// ErrSuspended, ErrLimit or ErrClosed, as below, was not executed in any attempt. A kind that
// a handler returns has the meaning that the application gives it.
//
//	code                cause                                         kind
//	InvalidArgument     the call has no key, the target is invalid,   ErrInvalid
//	                    or caller and server have different KeyFields
//	Unavailable         the key had no owner, or the connection to    ErrNoOwner
//	                    the owner failed
//	Unavailable         all servers tried have rejected the call      ErrNotOwner
//	Unavailable         the server's lease remained suspended         ErrSuspended
//	Unavailable         the lease ended during the call, gRPC lost    ErrIndeterminate
//	                    the connection, the server did not respond
//	                    while the key moved, or an attempt may have
//	                    been executed and the later attempts had no
//	                    response
//	Aborted             a stream of requests was rejected             ErrNotOwner
//	ResourceExhausted   MaxOutstanding calls were in progress         ErrLimit
//	DeadlineExceeded    the call's deadline has passed                ErrIndeterminate if an
//	Canceled            the caller has cancelled the call             attempt may have been
//	                                                                  executed, or as above
//	Canceled            the lookup was closed                         ErrClosed
//
// Without managers calls are routed by the last table. Statuses of failed calls then contain
// the time since the last message from a manager.
//
// # On the wire
//
// The header leasehold-key has the key of a call, as 16 hexadecimal digits; or a name, which the
// server hashes, if the header leasehold-key-kind is "name". A unary call with
// the key in a field of its request has no header: the server reads the field. A key that is
// already in the outgoing metadata is replaced or removed, so that a handler may forward all
// metadata of the call that it serves.
//
// A rejection is a status Aborted with a google.rpc.ErrorInfo of domain "leasehold" and
// reason "NOT_THE_OWNER", with the namespace and the key in its metadata, so that callers in
// other languages can implement retries. If the lease is suspended, the status is Unavailable
// and the reason "SUSPENDED": not executed, and retried at the same server. If the server
// took the key from a field of the request, the metadata has method and field, too. If the
// caller used another field, the configuration is wrong, and the call is not retried.
//
// # Connections
//
// A connection to a server is opened with the first call to it. It is closed when the server
// owns no key, after the last call has ended. Its TLS server name is the namespace, unless
// grpc.WithAuthority sets another: the servers of one namespace have certificates for one
// name. With package secure servers have their own identities instead, and callers verify
// these:
//
//	grpc.WithTransportCredentials(keeper.Client("spiffe://example.org/owner/presence/{name}"))
//
// Servers use grpc.Creds(keeper.Server()). Both use the current certificate files.
//
// Set deadlines: a call to a server that does not respond ends when its key moves, and not
// before. A stream may also need grpc.WithKeepaliveParams: keepalive ends it after Time and
// Timeout without a reply of the server, independent of the managers. [ServerOptions] permit
// a Time of 5 s or more.
//
// # Concurrency and cost
//
// Everything is safe for concurrent use. A call takes no lock of this package. Each
// connection has a goroutine that follows the table, and each stream at a server one that
// waits for the end of its lease.
//
// Routing adds 4 µs to a call that takes 69 over loopback; most of it is the timer and the
// context that end the call when its key moves. A key in an option is sent in a header, which
// adds 5 more, and the server's check adds 3: go test -run none -bench Call ./leasegrpc.
//
// Interceptors before these options see a call once; those after them see every attempt.
package leasegrpc
