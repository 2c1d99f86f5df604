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

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/server/cli"
)

// debugSettings says where profiles of the process can be had. They show what is in its
// memory, and take its time: so they have an address of their own, which is that of
// nobody unless an administrator says so.
type Debug struct {
	listen string
	public bool
}

func (d *Debug) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&d.listen, "debug-listen", "", "the `address` for profiles of this process, /debug/pprof/, such as 127.0.0.1:6060\n(default none)")
	f.BoolVar(&d.public, "debug-public", false, "let --debug-listen be an address that other computers reach; whoever reaches it can read\nwhat this process has in its memory")
}

func (d *Debug) Validate(origin func(flag string) string) error {
	if d.listen == "" {
		if d.public {
			return fmt.Errorf("%s is for --debug-listen, which is not given", origin("debug-public"))
		}
		return nil
	}
	if err := cli.CheckAddr(d.listen); err != nil {
		return fmt.Errorf("%s: %w", origin("debug-listen"), err)
	}
	if !d.public && !address.Loopback(d.listen) {
		return fmt.Errorf("%s %s: others than this computer may reach that address, and nobody is asked for a password: use 127.0.0.1, or say --debug-public if the network can be trusted",
			origin("debug-listen"), d.listen)
	}
	return nil
}

// Serve serves profiles until what it returns is called.
func (d *Debug) Serve(log *slog.Logger) (stop func(), err error) {
	if d.listen == "" {
		return func() {}, nil
	}
	at, err := net.Listen("tcp", d.listen)
	if err != nil {
		return nil, leasehold.Errorf("listen", leasehold.ErrUnavailable, d.listen, "%w; choose another with --debug-listen", err)
	}
	// A profile takes as long as its caller wants, so that writing has no deadline.
	server := &http.Server{Handler: profiles(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	stop = serve(server, at, 64, log, "profiles are no longer served")
	log.Info("profiles of this process can be had", "at", "http://"+at.Addr().String()+"/debug/pprof/")
	return stop, nil
}

// profiles has a mux of its own: that of the whole process is never served. A web page
// whose name means this computer all of a sudden does not get them: we answer to
// addresses and localhost alone.
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
