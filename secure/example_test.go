package secure_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/secure"
)

// An owner, with the files of "leasehold pki init --owners sessions/cache-a=...".
// The managers permit only the name in its certificate.
func Example_owner() {
	keeper, err := secure.Open(secure.Config{
		Cert:   "/etc/leasehold/tls.crt",
		Key:    "/etc/leasehold/tls.key",
		Roots:  "/etc/leasehold/ca.crt",
		Logger: slog.Default(),
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer keeper.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o, err := owner.Join(ctx, owner.Config{
		Namespace:   "sessions",
		Name:        "cache-a",
		Managers:    []string{"m1.example.org:7400", "m2.example.org:7400", "m3.example.org:7400"},
		Addr:        "cache-a.example.org:8080",
		Credentials: keeper.Client(),
	})
	if err != nil {
		log.Print(err)
		return
	}
	if err := o.Close(ctx); err != nil {
		log.Print(err)
	}
}

// A server whose values move with their keys: owners verify each other's certificates, and
// callers connect over TLS.
func ExampleDir() {
	keeper, err := secure.Open(secure.Dir("pki/owner/sessions/cache-a"))
	if err != nil {
		log.Print(err)
		return
	}
	defer keeper.Close()

	as := owner.Config{Namespace: "sessions", Managers: []string{"m1.example.org:7400"}, Addr: "cache-a.example.org:8080"}
	as.Name, as.Credentials = "cache-a", keeper.Client()
	as.Mover = &owner.Mover{Credentials: keeper.Client(), ServerCredentials: keeper.Server()}
	values, err := leasemap.Join(context.Background(), as, leasemap.Config[string]{})
	if err != nil {
		log.Print(err)
		return
	}
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 5 * time.Second, TLSConfig: keeper.ServerTLS(secure.IfGiven)}
	log.Print(server.ListenAndServeTLS("", ""))
	log.Print(values.Close(context.Background()))
}

// A lookup with certificates of SPIFFE, which have no host names: Servers lists the
// identities of the managers.
func Example_lookup() {
	keeper, err := secure.Open(secure.Config{
		Cert:    "/run/spire/svid.pem",
		Key:     "/run/spire/svid_key.pem",
		Roots:   "/run/spire/bundle.pem",
		Servers: []secure.Identity{"spiffe://example.org/manager/{name}"},
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer keeper.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	l, err := lookup.Open(ctx, lookup.Config{
		Namespace:   "sessions",
		Managers:    []string{"10.0.0.1:7400", "10.0.0.2:7400"},
		Credentials: keeper.Client(),
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer func() { _ = l.Close(context.Background()) }() // it never fails

	if addr, ok := l.Find(leasehold.KeyOf("user-4711")); ok {
		fmt.Println("user-4711 is at", addr)
	}
}

// An HTTP server that only managers may call.
func ExampleKeeper_ServerTLS() {
	var keeper *secure.Keeper // from secure.Open
	server := &http.Server{
		Addr:              ":8443",
		ReadHeaderTimeout: 5 * time.Second,
		TLSConfig:         keeper.ServerTLS(secure.Required, "spiffe://example.org/manager/{name}"),
	}
	log.Print(server.ListenAndServeTLS("", "")) // the files are the keeper's business
}

func ExampleIdentity_Match() {
	id := secure.Identity("spiffe://example.org/owner/sessions/cache-a")
	fmt.Println(id.Match("spiffe://example.org/owner/sessions/{name}"))
	fmt.Println(id.Match("spiffe://example.org/owner/presence/{name}"))
	// Output:
	// cache-a true
	//  false
}
