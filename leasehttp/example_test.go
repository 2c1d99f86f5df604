package leasehttp_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// A source can be parsed from text, such as a configuration.
func ExampleParseSource() {
	source, err := leasehttp.ParseSource("header:X-User,path:2")
	if err != nil {
		log.Fatal(err)
	}
	name, err := source.Name(httptest.NewRequest(http.MethodGet, "/users/alice/inbox", nil))
	fmt.Println(name, err)

	_, err = leasehttp.ParseSource("body:user")
	fmt.Println(err)
	// Output:
	// alice <nil>
	// key source "body:user": unknown source "body": want header:NAME, path:NUMBER, query:NAME or cookie:NAME
}

// A source of the application's own: the first label of the host.
func ExampleFunc() {
	tenant := leasehttp.Func("tenant", func(r *http.Request) (string, bool) {
		name, _, ok := strings.Cut(r.Host, ".")
		return name, ok
	})
	name, _ := tenant.Name(httptest.NewRequest(http.MethodGet, "http://acme.example.com/", nil))
	fmt.Println(name)
	// Output: acme
}

// A caller sends a request to a service; the owner of the key gets it.
func ExampleTransport() {
	var l *lookup.Lookup // from lookup.Open

	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{Lookup: l, Key: leasehttp.PathSegment(2)})
	if err != nil {
		log.Print(err)
		return
	}
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	answer, err := client.Get("http://presence/users/alice")
	if err != nil {
		log.Print(err, leasehold.KindOf(err))
		return
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(log.Writer(), answer.Body)
}

// A custom gateway; the command "leasehold gateway" runs a complete one.
func ExampleProxy() {
	var transport *leasehttp.Transport // from NewTransport

	proxy, err := leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, MaxBody: 1 << 20, Stall: time.Minute})
	if err != nil {
		log.Print(err)
		return
	}
	server := &http.Server{
		Addr: ":8080", Handler: proxy,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	log.Print(server.ListenAndServe())
}

// A server serves only users that it owns.
func ExampleMiddleware() {
	var o *owner.Owner // from owner.Join

	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{name}", func(w http.ResponseWriter, r *http.Request) {
		lease, _ := leasehttp.Lease(r.Context())
		_, _ = fmt.Fprintf(w, "%s, under generation %d\n", r.PathValue("name"), lease.Generation)
	})
	server := &http.Server{
		Addr: ":8080", Handler: leasehttp.Middleware(o, leasehttp.PathSegment(2))(mux), ReadHeaderTimeout: 10 * time.Second,
	}
	log.Print(server.ListenAndServe())
}
