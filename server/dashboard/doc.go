// Package dashboard is the page that every manager serves on its HTTP port: owners, transfers and their
// reasons, and for administrators, orders.
//
// # DESIGN
//
// The page is a few files in the binary: HTML, CSS and ES modules, written by hand, without dependencies
// and without a build step. It loads code and styles only from those files, which its
// Content-Security-Policy enforces. It puts values into the document as text, never as HTML: the name of
// an owner may be <script>.
//
// Its data comes over one stream of server-sent events. All viewers of a namespace share a hub, which
// watches the namespace by package admin, keeps a copy of the lease table, and polls the state of the
// owners every second. A viewer receives a snapshot first and then deltas, in the JSON
// form of package admin. Each frame is encoded and compressed once for all viewers: frames are
// compressed one by one, and concatenated they are a valid gzip stream. So a further viewer costs the
// manager little more than writing bytes.
//
// A slow viewer has a bounded queue: its frames are dropped, and it receives a snapshot when it is ready
// again. A viewer that reconnects sends the id of its last frame, and receives those after it if they are
// buffered. A hub stops some time after its last viewer.
//
// A standby shows the same as the leader, by requests to it. Without a leader, or if the manager itself
// does not respond, the page shows the last known state, greyed, with the time and the reason.
//
// # Security
//
// With an access policy, which needs TLS, visitors authenticate with the certificate of the connection, or
// log in with a token of the policy. Every request to the manager is made as that caller, so that the
// policy decides about each; only visitors with the same credentials share a hub. A stream ends within a
// second or so after the policy, a revocation or a logout takes its permission away, and the page clears
// what it has shown. The files of the page need no permission: there is no data in them.
//
// Without a policy, every visitor may look, as every client of the manager may, and orders need a login
// with the administrator's token.
//
// A login is a cookie that no script can read, no other site can send, and over TLS only this host can
// set. An order has in a header field a token of the session, or of the certificate, too: browsers send
// cookies and certificates with requests of any page. Requests that a browser makes on behalf of another
// site are refused, and so are those for another host name (DNS rebinding), and those with a token in
// their URL.
package dashboard
