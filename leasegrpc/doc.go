// Package leasegrpc routes gRPC calls to the servers that own their keys.
//
// A caller connects to a namespace, and says for each call what it is about. The call
// goes to the owner, and is made again if that was not the owner any more:
//
//	conn, err := leasegrpc.NewClient(ctx, "leasehold://m1:7400,m2:7400/presence", leasegrpc.Config{},
//		grpc.WithTransportCredentials(insecure.NewCredentials()))
//	...
//	answer, err := pb.NewPresenceClient(conn).Update(ctx, request, leasegrpc.WithKey("alice"))
//
// Or it follows a lease table that is open already, with [DialOptions] and a target
// without managers, leasehold:///presence. What a call is about can also be read from
// its request, if [Config.Methods] says from which field.
//
// A server refuses what it does not own, and its handlers find their lease in the
// context, with [Lease]:
//
//	options, err := leasegrpc.ServerOptions(o, leasegrpc.ServerConfig{})
//	...
//	server := grpc.NewServer(options...)
//
// # What a server gets
//
// Before a handler is called, the server waits for a key that is about to arrive
// (owner.Owner.Await) and checks that it owns the key (Check). What the handler
// returns leaves the server only if the lease was held throughout (Held). That is
// steps 1 and 4 of a server's obligations in package leasehold. The others are the
// handler's; package leasemap does them, and may be all that a handler calls.
//
// A handler that returns an error of kind [leasehold.ErrNotOwner] refuses the call as the
// interceptor does, and the caller tries again elsewhere: nothing may have been done. With
// [leasehold.ErrSuspended] the caller tries again here.
// Other errors of ours cross the wire with their kinds. An error that is a gRPC status
// already is passed on as it is, so that one which a handler has got from another
// service is not taken for its own.
//
// The context of a stream ends when the lease does, and nothing can be sent on it any
// more: then the caller is told. A handler that waits in Recv alone does not notice.
// It hears of it with the next request, or should wait for the context, too. A suspended
// lease (see package owner) has not ended: the context goes on, and messages cannot be sent
// until it is resumed.
//
// Metadata is not state, and should not have any: headers and trailers that a handler
// has set leave with the status, even if that says that the lease has ended. A
// stream's SendHeader is refused without a lease, as its messages are; grpc.SendHeader,
// which is all that unary handlers have, is not.
//
// # What a caller gets
//
// Calls are repeated as [lookup.Lookup.Do] does it: after a backoff, or as soon as the
// key has a new owner; as often as [Config.Attempts] says, and for as long as the
// call's context lasts. It depends on what became of the last attempt:
//
//   - The key had no owner, or its owner could not be connected to: nothing was sent,
//     and it is repeated.
//   - The server refused it: nothing was done, and it is repeated. If the server's lease is
//     suspended, that goes on until the call's deadline.
//   - The connection broke before there was an answer, or the lease ended while the
//     server worked: it may have been carried out. It is repeated if it is idempotent,
//     which [Method.Idempotent] or [WithIdempotent] says. Otherwise it fails with
//     ErrIndeterminate.
//   - The server's application said something else: that is the answer.
//
// A call with one request and a stream of answers is repeated in the same way until
// the first answer has come. One with a stream of requests is not repeated once it is
// open: the application opens another one.
//
// What a call fails with is a status, as always with gRPC. Errors of ours have a kind,
// too: errors.Is(err, leasehold.ErrNoOwner) works. A call that was given up with
// ErrNoOwner, ErrNotOwner, ErrSuspended, ErrLimit or ErrClosed, as below, was not carried out by any attempt; what
// a handler means by a kind that it returns itself is its own affair.
//
//	code                what happened                                 kind
//	InvalidArgument     there is no key, or the target is wrong, or   ErrInvalid
//	                    caller and server have different KeyFields
//	Unavailable         nobody owned the key all the while, or the    ErrNoOwner
//	                    owner could not be connected to
//	Unavailable         all servers that were asked refused           ErrNotOwner
//	Unavailable         the server's lease was suspended all the       ErrSuspended
//	                    while
//	Unavailable         the lease ended while the server worked, or   ErrIndeterminate
//	                    an attempt may have been carried out, and
//	                    whatever came after it did not answer
//	Unavailable         the server has gone, says gRPC                ErrIndeterminate
//	Aborted             a stream of requests was refused              ErrNotOwner
//	ResourceExhausted   MaxOutstanding calls were under way           ErrLimit
//	DeadlineExceeded    the call's time was over                      as above, or none
//	Canceled            the lookup was closed                         ErrClosed
//
// Without managers calls go on by the last table. Statuses of calls that were given up
// then say for how long none has been heard of.
//
// # On the wire
//
// The header leasehold-key has the key of a call, as 16 hexadecimal digits. A unary call
// whose key is in a field of its request has none: the server reads the field. One that
// the outgoing metadata has already is replaced or removed, so that a handler may pass
// on all metadata of the call that it serves.
//
// A refusal is a status Aborted with a google.rpc.ErrorInfo, of domain "leasehold",
// reason "NOT_THE_OWNER", and the namespace and the key in its metadata. So callers in
// other languages can do the same. If its lease is suspended, the status is Unavailable and
// the reason "SUSPENDED": nothing was done, and the call is made again at the same server. If the server took the key from a field of the
// request, method and field are in the metadata, too: a caller that took it from another
// field is wrong, or the server is, and does not try again.
//
// # Connections
//
// There is one connection for each server that is called, made when the first call
// needs it. It ends when its server owns nothing any more, and not before the last
// call has. Its TLS name is the namespace, unless grpc.WithAuthority says otherwise:
// servers of one namespace have certificates for one name.
// With package secure servers have identities of their own instead, and callers say which
// they take, whatever the name:
//
//	grpc.WithTransportCredentials(keeper.Client("spiffe://example.org/owner/presence/{name}"))
//
// and servers grpc.Creds(keeper.Server()). Both go by the files of now.
//
// A server whose computer vanishes without a word is noticed as gRPC does it. Set
// deadlines, and grpc.WithKeepaliveParams for streams.
//
// # Concurrency and cost
//
// Everything may be used from many goroutines at once. A call takes no lock of this
// package on its way to the server. Each connection has a goroutine that follows the
// table, and each stream at a server one that waits for the end of its lease.
//
// Routing adds half a microsecond to a call that takes 40 over loopback. A key that is
// said with an option is sent in a header, which adds 2 more, and the server's check
// adds 1: go test -run none -bench Call ./leasegrpc.
//
// Interceptors that come before these options see a call once, whatever becomes of it;
// those that come after them see every attempt.
package leasegrpc
