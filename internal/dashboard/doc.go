// Package dashboard is the page that every manager serves on its HTTP port: who
// owns what, what is moving and why, and for an administrator, orders.
//
// # DESIGN
//
// The page is a few files that the binary carries: HTML, CSS and ES modules as a
// browser takes them, written by hand, with nothing of others and nothing to build.
// It loads no code and no style but from those files, which its Content-Security-Policy
// enforces, and puts what it shows into the document as text, never as HTML: an owner
// may be called <script>.
//
// What it shows comes over one stream of server-sent events. All viewers of a
// namespace share a hub, which watches the namespace as any tool does (package admin),
// keeps a copy of the lease table, and polls the state of the owners every second. A viewer
// gets a snapshot first and then what has changed, in the JSON form of package admin. Each frame is encoded and compressed
// once, whoever gets it: a frame is compressed by itself, and the frames of a stream
// one after the other are a gzip stream all the same. So a further viewer costs the
// manager little more than writing bytes.
//
// A viewer that reads too slowly has no queue that grows: what waits for it is dropped,
// and it gets a snapshot when it can take one. One that reconnects names the last
// frame that it has, and gets those after it if they are remembered. A hub ends a
// while after its last viewer has gone, and then nothing is left of it.
//
// A standby shows the same as the leader, which it asks. When it cannot, the page goes
// on showing what was last known, greyed, and says since when and why; it does so as
// well when the manager itself falls silent.
//
// # Security
//
// With an access policy, which goes with TLS, whoever looks or orders must be known: by
// the certificate of the connection, or by a login with a token of the policy. Every
// question to the manager is asked in that name, so that the policy decides about each;
// what is shown is shared only by those who are the same. A stream ends within a second
// or so when the policy, a revocation or a logout takes the right away that it goes by,
// and the page forgets what it has shown. The files of the page are for everybody: there
// is nothing in them.
//
// Without one, everybody who reaches the port may look, as everybody may who reaches the
// manager, and orders need a login with the administrator's token.
//
// A login is a cookie that no script can read and no other site can send, and over TLS
// none but this host can set. Every order carries a token of the session, or of the
// certificate, in a header as well: browsers show both cookies and certificates whoever
// has made the page that asks. Requests that a browser makes on behalf of another site are
// refused, and so are those for a host that is not ours, lest a site that resolves its own
// name to our address reads along, and those with a token in their address.
package dashboard
