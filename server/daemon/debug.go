package daemon

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// Debug configures the profiling server. Profiles show the process's memory and use its CPU, so
// they have their own address, which is disabled by default.
type Debug struct {
	listen string
	public bool
}

func (d *Debug) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&d.listen, "debug-listen", "", "listen `address` for profiles of this process (/debug/pprof/), such as 127.0.0.1:6060\n(default none)")
	f.BoolVar(&d.public, "debug-public", false, "allow a --debug-listen that other computers can connect to: they can then read the\nmemory of this process")
}

func (d *Debug) Validate(origin func(flag string) string) error {
	if d.listen == "" {
		if d.public {
			return fmt.Errorf("%s requires --debug-listen", origin("debug-public"))
		}
		return nil
	}
	if err := cli.CheckAddr(d.listen); err != nil {
		return fmt.Errorf("%s: %w", origin("debug-listen"), err)
	}
	if !d.public && !address.Loopback(d.listen) {
		return fmt.Errorf("%s %s is not a loopback address, and profiles have no access control: use 127.0.0.1, or pass --debug-public if the network is trusted",
			origin("debug-listen"), d.listen)
	}
	return nil
}

// Serve serves profiles until the returned function is called.
func (d *Debug) Serve(log *slog.Logger) (stop func(), err error) {
	if d.listen == "" {
		return func() {}, nil
	}
	at, err := ListenOn("debug-listen", d.listen)
	if err != nil {
		return nil, err
	}
	// The client chooses the duration of a profile, so there is no write timeout.
	server := &http.Server{Handler: profiles(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	stop = serve(server, at, 64, log, "profiles are not served any more")
	log.Info("serving profiles of this process", "at", "http://"+at.Addr().String()+"/debug/pprof/")
	return stop, nil
}

// profiles returns a separate mux: the global one is never served. It accepts only IP addresses and
// localhost as host, which prevents DNS rebinding.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
			http.Error(w, "profiles are served by address, or as localhost", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
