// Package secure is the TLS identity of a process and its trusted roots: a certificate, its
// key, and the roots of the certificates that it accepts, from PEM files that are
// reloaded while the process runs.
//
//	keeper, err := secure.Open(secure.Dir("pki/owner/sessions/cache-a"))
//	if err != nil {
//		return err
//	}
//	defer keeper.Close()
//	o, err := owner.Join(ctx, owner.Config{
//		Namespace:   "sessions",
//		Name:        "cache-a", // as in the certificate
//		Addr:        "cache-a:8080",
//		Managers:    []string{"m1:7400", "m2:7400", "m3:7400"},
//		Credentials: keeper.Client(),
//	})
//
// The command "leasehold pki init" makes such files; those of another PKI, or of
// SPIFFE, do as well. [Keeper.Client] and [Keeper.Server] are for gRPC,
// [Keeper.ClientTLS] and [Keeper.ServerTLS] for everything else.
//
// # Identities
//
// A certificate says who its holder is by its subject alternative names, URIs
// and host names, and never by its common name: see [Identities]. Package
// access decides by identity what a caller may do.
//
// # Guarantees
//
// TLS 1.3 and nothing older. No session is resumed: each connection is verified
// against the roots and revocation lists of its time. A server's certificate must
// be for servers and a client's for clients. Whoever has a CA's certificate
// cannot speak with it.
//
// New files are taken without a restart and without touching a connection that
// stands; a certificate that expires does not end one either, and neither does a
// root that is taken away. New connections go by the new files. Files that are
// not in order are never taken, not even in part: all stays as it was, and the
// log and [Keeper.Check] say why. A private key that others can read is not in
// order.
//
// To replace a CA, trust both first: put the new one's certificate into Roots,
// beside the old one, everywhere. Then replace the certificates. Then take the
// old one away.
//
// All roots are trusted for all identities. Of federated SPIFFE trust domains,
// give only those bundles whose CAs may speak for everyone.
//
// # What it costs
//
// A goroutine, and the reading of up to four files every Config.Poll. Both sides
// of a handshake together take about a millisecond of a core with ECDSA P-256
// (BenchmarkHandshake); [Keeper.Revoked] some tens of nanoseconds. What goes over
// a connection costs what crypto/tls does.
package secure
