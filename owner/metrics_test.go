package owner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasehttp"
	"github.com/leasehold-dev/leasehold/lookup"
	"github.com/leasehold-dev/leasehold/owner"
)

// value returns the value of a metric by name and labels, "name" or "name{label=value,...}", in
// any order; -1 if it does not exist.
func value(t *testing.T, from prometheus.Gatherer, what string) float64 {
	t.Helper()
	name, rest, _ := strings.Cut(strings.TrimSuffix(what, "}"), "{")
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metrics:
		for _, m := range f.GetMetric() {
			has := map[string]bool{"": true}
			for _, l := range m.GetLabel() {
				has[l.GetName()+"="+l.GetValue()] = true
			}
			for want := range strings.SplitSeq(rest, ",") {
				if !has[want] {
					continue metrics
				}
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return -1
}

// The metrics of an owner from Join to Close, with an outage in between.
func TestMetrics(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		r := prometheus.NewRegistry()
		n := c.Node("a")
		cfg := n.OwnerConfig()
		cfg.Metrics = r
		o := n.Join(cfg)
		c.Settle()
		between := func(what string, least, most float64) {
			t.Helper()
			if v := value(t, r, what); v < least || v > most {
				t.Errorf("%s is %v, want %v to %v", what, v, least, most)
			}
		}
		exactly := func(what string, want float64) { t.Helper(); between(what, want, want) }
		const in = "{namespace=test"

		exactly("leasehold_owner_sessions"+in+"}", 1)
		exactly("leasehold_owner_joins_total"+in+",outcome=accepted}", 1)
		exactly("leasehold_owner_leases"+in+"}", 1)
		exactly("leasehold_owner_grants_total"+in+"}", 1)
		exactly("leasehold_owner_key_space_ratio"+in+"}", 1)
		exactly("leasehold_owner_lease_duration_seconds"+in+"}", 10)
		exactly("leasehold_owner_leader_term"+in+"}", 1)
		for key := range leasehold.Key(1000) {
			o.Check(key)
		}
		before := value(t, r, "leasehold_owner_renewals_total"+in+"}")
		c.Advance(30 * time.Second)
		between("leasehold_owner_renewals_total"+in+"}", before+8, before+20)
		between("leasehold_owner_renewal_duration_seconds"+in+"}", before+8, before+25)
		between("leasehold_owner_requests_total"+in+"}", before+8, before+25)
		between("leasehold_owner_validity_seconds"+in+"}", 7, 10)
		between("leasehold_owner_work_total"+in+"}", 1000, 1000)
		exactly("leasehold_owner_clock_trouble_total"+in+",kind=suspended}", 0)

		n.Cut()
		c.Advance(7 * time.Second)
		between("leasehold_owner_validity_seconds"+in+"}", 0.1, 3.1)
		between("leasehold_owner_leader_silences_total"+in+"}", 1, 100)
		c.Advance(5 * time.Second)
		exactly("leasehold_owner_validity_seconds"+in+"}", 0)
		exactly("leasehold_owner_leases"+in+"}", 0)
		exactly("leasehold_owner_key_space_ratio"+in+"}", 0)
		exactly("leasehold_owner_suspended_leases"+in+"}", 1)
		exactly("leasehold_owner_suspensions_total"+in+"}", 1)
		exactly("leasehold_owner_resumptions_total"+in+"}", 0)
		n.Heal()
		c.Settle()
		exactly("leasehold_owner_leases"+in+"}", 1)
		exactly("leasehold_owner_suspended_leases"+in+"}", 0)
		exactly("leasehold_owner_resumptions_total"+in+"}", 1)
		exactly("leasehold_owner_revocations_total"+in+",cause=expired}", 0)

		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		exactly("leasehold_owner_sessions"+in+"}", 0)
		exactly("leasehold_owner_leases"+in+"}", 0)
		exactly("leasehold_owner_validity_seconds"+in+"}", -1) // no open owner
		exactly("leasehold_owner_grants_total"+in+"}", 1)
	})
}

// Failed calls of Join are counted by outcome.
func TestJoinMetrics(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		r := prometheus.NewRegistry()
		cfg := c.Node("a").OwnerConfig()
		cfg.Metrics = r
		if _, err := owner.Join(t.Context(), owner.Config{Namespace: "test", Metrics: r}); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("without managers: %v", err)
		}
		gone := cfg
		gone.Namespace = "nowhere"
		if _, err := owner.Join(t.Context(), gone); leasehold.KindOf(err) != leasehold.ErrNotFound {
			t.Errorf("without a namespace: %v", err)
		}
		if n := value(t, r, "leasehold_owner_joins_total{namespace=nowhere,outcome=refused}"); n != 1 {
			t.Errorf("%v calls refused", n)
		}
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gone.Namespace, gone.Managers = "silent", []string{"nobody:1"}
		if _, err := owner.Join(late, gone); leasehold.KindOf(err) != leasehold.ErrUnavailable {
			t.Errorf("without managers: %v", err)
		}
		if n := value(t, r, "leasehold_owner_joins_total{namespace=silent,outcome=gave_up}"); n != 1 {
			t.Errorf("%v calls gave up", n)
		}
	})
}

// A name conflict with another collector is an error of Join and Open.
func TestMetricsTaken(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		r := prometheus.NewRegistry()
		r.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_owner_leases", Help: "Ours."}))
		r.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "leasehold_lookup_lsn", Help: "Ours."}))
		cfg := c.Node("a").OwnerConfig()
		cfg.Metrics = r
		if _, err := owner.Join(t.Context(), cfg); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("Join: %v", err)
		}
		look := c.Node("b").LookupConfig()
		look.Metrics = r
		if _, err := lookup.Open(t.Context(), look); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("Open: %v", err)
		}
	})
}

// Owners and lookups of two namespaces, and two of one namespace, share a registry.
func TestSharedRegistry(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		r := prometheus.NewRegistry()
		for i, in := range []*leaseholdtest.Cluster{c, c.In("other")} {
			for _, name := range [][]string{{"a", "b"}, {"c", "d"}}[i] {
				n := in.Node(name)
				cfg := n.OwnerConfig()
				cfg.Metrics = r
				n.Join(cfg)
				look := n.LookupConfig()
				look.Metrics = r
				l, err := lookup.Open(t.Context(), look)
				if err != nil {
					t.Fatal(err)
				}
				n.Cleanup(func(context.Context) { _ = l.Close(context.Background()) })
			}
			in.Settle()
		}
		for _, ns := range []string{"test", "other"} {
			for what, want := range map[string]float64{"owner_sessions": 2, "owner_leases": 2, "owner_key_space_ratio": 1, "lookup_open": 2, "lookup_ranges": 2, "lookup_servers": 2} {
				if got := value(t, r, "leasehold_"+what+"{namespace="+ns+"}"); got != want {
					t.Errorf("%s of %s is %v, want %v", what, ns, got, want)
				}
			}
		}
	})
}

// The metrics of a lookup with changes, a loss and a loss of contact, its calls,
// and the metrics of a gateway.
func TestLookupMetrics(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{Policy: "even"}, func(t *testing.T, c *leaseholdtest.Cluster) {
		r := prometheus.NewRegistry()
		n := c.Node("caller")
		cfg := n.LookupConfig()
		cfg.Metrics = r
		c.Node("a").Join(owner.Config{})
		c.Settle()
		l, err := lookup.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.Cleanup(func(context.Context) { _ = l.Close(context.Background()) })
		exactly := func(what string, want float64) {
			t.Helper()
			if v := value(t, r, "leasehold_"+what); v != want {
				t.Errorf("%s is %v, want %v", what, v, want)
			}
		}
		exactly("lookup_lsn{namespace=test}", float64(l.LSN()))
		exactly("lookup_updates_total{namespace=test}", 1)
		exactly("lookup_stale_after_seconds{namespace=test}", 30)
		c.Node("b").Join(owner.Config{})
		c.Settle()
		c.Advance(time.Second)
		exactly("lookup_lsn{namespace=test}", float64(l.LSN()))
		exactly("lookup_ranges{namespace=test}", 2)
		if v := value(t, r, "leasehold_lookup_losses_total{namespace=test,cause=released}"); v < 1 {
			t.Errorf("%v losses by a recall", v)
		}

		tries := 0
		_ = l.Do(t.Context(), 1, func(context.Context, string) error {
			if tries++; tries < 3 {
				return leasehold.ErrNotOwner
			}
			return nil
		})
		_ = l.Do(t.Context(), 1, func(context.Context, string) error { return errors.New("no") })
		_ = l.Do(t.Context(), 1, func(context.Context, string) error { return leasehold.ErrUnavailable })
		exactly("lookup_calls_total{namespace=test}", 3)
		exactly("lookup_call_retries_total{namespace=test,kind=not_the_owner}", 2)
		exactly("lookup_call_failures_total{namespace=test,kind=error}", 1)
		exactly("lookup_call_failures_total{namespace=test,kind=unavailable}", 1)

		gateway(t, l, r)
		n.Cut()
		c.Advance(time.Minute)
		if age := value(t, r, "leasehold_lookup_age_seconds{namespace=test}"); age < 50 {
			t.Errorf("the age of the table is %v s", age)
		}
		exactly("lookup_contact_losses_total{namespace=test}", 1)
		exactly("lookup_contact_lost{namespace=test}", 1)
		exactly("lookup_losses_total{namespace=test,cause=contact_lost}", 0) // no loss is reported
		n.Heal()
		c.Advance(10 * time.Second)
		exactly("lookup_contact_losses_total{namespace=test}", 1)
		exactly("lookup_contact_lost{namespace=test}", 0)
		_ = l.Close(context.Background())
		exactly("lookup_open{namespace=test}", 0)
		exactly("lookup_age_seconds{namespace=test}", -1)
	})
}

// gateway sends requests through a proxy whose servers respond by the path.
func gateway(t *testing.T, l *lookup.Lookup, r prometheus.Registerer) {
	t.Helper()
	transport, err := leasehttp.NewTransport(leasehttp.TransportConfig{
		Lookup: l, Key: leasehttp.Header("Key"), Attempts: 2,
		Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			var status int
			if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err != nil {
				return nil, errors.New("hung up")
			}
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := leasehttp.NewProxy(leasehttp.ProxyConfig{Transport: transport, Metrics: r, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/200", "/204", "/302", "/404", "/500", "/broken", "/nokey"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if path != "/nokey" {
			req.Header.Set("Key", "alice")
		}
		proxy.ServeHTTP(&discard{header: http.Header{}}, req)
	}
	from, ok := r.(prometheus.Gatherer)
	if !ok {
		t.Fatal("the namespace is not readable")
	}
	for what, want := range map[string]float64{
		"requests_total{namespace=test,code=2xx}": 2, "requests_total{namespace=test,code=3xx}": 1,
		"requests_total{namespace=test,code=4xx}": 2, "requests_total{namespace=test,code=5xx}": 2,
		"request_duration_seconds{namespace=test}": 7, "requests_in_flight{namespace=test}": 0,
		"failures_total{namespace=test,kind=invalid}": 1, "failures_total{namespace=test,kind=indeterminate}": 1,
	} {
		if v := value(t, from, "leasehold_gateway_"+what); v != want {
			t.Errorf("%s is %v, want %v", what, v, want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
