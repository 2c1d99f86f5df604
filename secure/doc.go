// Package secure loads the TLS identity of a process from PEM files, and reloads them while
// the process runs: a certificate, its private key, the trusted roots and revocation lists.
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
// The command "leasehold pki init" creates such files; those of another PKI, or of
// SPIFFE, work as well. [Keeper.Client] and [Keeper.Server] are for gRPC,
// [Keeper.ClientTLS] and [Keeper.ServerTLS] for other protocols.
//
// # Identities
//
// The identities of a certificate are its subject alternative names: URIs and host names.
// The common name is ignored: see [Identities]. Package access authorizes callers by
// identity.
//
// # Guarantees
//
// The only version is TLS 1.3. Sessions are not resumed: each connection is verified
// against the current roots and revocation lists. A server's certificate must be for
// servers and a client's for clients. A CA's certificate cannot be used as either.
//
// New files are applied without a restart. Open connections continue, even if a
// certificate expires or a root is removed; new connections use the new files. Files are
// applied together or not at all: if one is invalid, the previous files stay in force, and
// the log and [Keeper.Check] have the reason. A private key that other users can read is
// invalid.
//
// To replace a CA, add the new root to Roots of all processes, then replace the
// certificates, then remove the old root.
//
// All roots are trusted for all identities. Of federated SPIFFE trust domains, configure
// only the bundles whose CAs may issue any identity.
//
// # Cost
//
// A Keeper has one goroutine and reads up to four files every Config.Poll. A handshake
// takes about a millisecond of CPU time on both sides together with ECDSA P-256
// (BenchmarkHandshake), and [Keeper.Revoked] some tens of nanoseconds. After the handshake
// a connection costs the same as with crypto/tls.
package secure
