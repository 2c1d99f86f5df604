package manager_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
	"github.com/leasehold-dev/leasehold/manager"
	"github.com/leasehold-dev/leasehold/owner"
	"github.com/leasehold-dev/leasehold/store/mem"
)

// scraped returns all metrics of a registry, by name and labels; of histograms the counts.
func scraped(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName() + labels(m)
			switch {
			case m.GetHistogram() != nil:
				out[name] = float64(m.GetHistogram().GetSampleCount())
			case m.GetCounter() != nil:
				out[name] = m.GetCounter().GetValue()
			default:
				out[name] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func labels(m *dto.Metric) string {
	var parts []string
	for _, l := range m.GetLabel() {
		parts = append(parts, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// registries has a registry for each manager.
type registries map[string]*prometheus.Registry

func (r registries) of(name string) prometheus.Registerer {
	r[name] = prometheus.NewRegistry()
	return r[name]
}

// figures compares some metrics of a scrape.
func figures(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if have, there := got[name]; !there || have != v {
			t.Errorf("%s is %v (present: %t), want %v", name, have, there, v)
		}
	}
}

// TestMetrics: the metrics of a group, with a crash of an owner and a failover.
func TestMetrics(t *testing.T) {
	all := registries{}
	leaseholdtest.Run(t, leaseholdtest.Config{Managers: 2, Policy: "even", Metrics: all.of}, func(t *testing.T, c *leaseholdtest.Cluster) {
		lives, dies := c.Node("lives"), c.Node("dies")
		lives.Join(owner.Config{})
		dies.Join(owner.Config{})
		lives.Lookup()
		c.Settle()

		at := map[string]map[string]float64{"m1": scraped(t, all["m1"]), "m2": scraped(t, all["m2"])}
		leader, standby := "m1", "m2"
		if at["m2"]["leasehold_manager_leader"] == 1 {
			leader, standby = "m2", "m1"
		}
		figures(t, at[standby], map[string]float64{
			"leasehold_manager_leader": 0, "leasehold_manager_leader_known": 1, "leasehold_manager_ready": 1, "leasehold_manager_term": 1,
			"leasehold_manager_leader_changes_total": 1,
		})
		if _, there := at[standby][`leasehold_manager_ranges{namespace="test"}`]; there {
			t.Error("a standby has metrics of a table")
		}
		figures(t, at[leader], map[string]float64{
			"leasehold_manager_leader": 1, "leasehold_manager_leader_known": 1, "leasehold_manager_ready": 1, "leasehold_manager_term": 1,
			`leasehold_manager_owners{namespace="test",state="member"}`:       2,
			`leasehold_manager_owners{namespace="test",state="silent"}`:       0,
			`leasehold_manager_ranges{namespace="test"}`:                      2,
			`leasehold_manager_unowned_ratio{namespace="test"}`:               0,
			`leasehold_manager_lease_wait_seconds{namespace="test"}`:          12,
			`leasehold_manager_joins_total{namespace="test"}`:                 2,
			`leasehold_manager_streams{client="owner"}`:                       2,
			`leasehold_manager_limit_used_ratio{resource="owners_connected"}`: 2.0 / (1 << 16),
			`leasehold_manager_policy_failures_total{namespace="test"}`:       0,
		})
		for _, counted := range []string{
			`leasehold_manager_grants_total{namespace="test"}`, `leasehold_manager_renewals_total{namespace="test"}`,
			`leasehold_manager_table_bytes{namespace="test"}`, `leasehold_manager_lsn{namespace="test"}`,
			`leasehold_manager_policy_duration_seconds{namespace="test"}`, `leasehold_manager_step_duration_seconds`,
			`leasehold_manager_wake_delay_seconds`,
			`leasehold_manager_store_request_duration_seconds{request="append"}`, `leasehold_manager_store_request_duration_seconds{request="write_record"}`,
		} {
			if at[leader][counted] == 0 {
				t.Errorf("%s is 0", counted)
			}
		}
		if n := at["m1"][`leasehold_manager_lookups{namespace="test"}`] + at["m2"][`leasehold_manager_lookups{namespace="test"}`]; n == 0 {
			t.Error("no manager has a connected lookup")
		}

		dies.Kill()
		c.Advance(time.Second)
		if share := scraped(t, all[leader])[`leasehold_manager_unowned_ratio{namespace="test"}`]; share != 0 {
			t.Errorf("%v of the keys are unowned while their leases may be held", share)
		}
		c.Advance(12 * time.Second)
		c.Settle()
		now := scraped(t, all[leader])
		figures(t, now, map[string]float64{`leasehold_manager_owners{namespace="test",state="member"}`: 1})
		if now[`leasehold_manager_losses_total{cause="expired",namespace="test"}`] == 0 {
			t.Error("no loss by an owner that died")
		}

		c.KillManager(leader)
		c.Advance(5 * time.Second)
		c.Settle()
		if families, err := all[leader].Gather(); err != nil || len(families) > 0 {
			t.Errorf("a manager that has ended has %d metrics, %v", len(families), err)
		}
		figures(t, scraped(t, all[standby]), map[string]float64{
			"leasehold_manager_leader": 1, "leasehold_manager_term": 2, "leasehold_manager_leader_changes_total": 2,
			`leasehold_manager_owners{namespace="test",state="member"}`: 1,
			`leasehold_manager_unowned_ratio{namespace="test"}`:         0,
		})
	})
}

// TestMoveMetrics: a move that succeeds is counted, with its time, by the leader and by
// both owners.
func TestMoveMetrics(t *testing.T) {
	all := registries{}
	leaseholdtest.Run(t, leaseholdtest.Config{Policy: "even", Metrics: all.of}, func(t *testing.T, c *leaseholdtest.Cluster) {
		of := map[string]*prometheus.Registry{}
		var keep *leasemap.Map[int]
		for _, name := range []string{"a", "b"} {
			n := c.Node(name)
			cfg := n.MovingConfig()
			of[name] = prometheus.NewRegistry()
			cfg.Metrics = of[name]
			m, err := leasemap.Join(t.Context(), cfg, leasemap.Config[int]{})
			if err != nil {
				t.Fatal(err)
			}
			n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
			if keep == nil {
				keep = m
				c.Settle()
				for i := range 100 {
					if _, err := m.Update(t.Context(), fmt.Sprint(i), func(v *int) error { *v = i; return nil }); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		c.Settle()
		c.Advance(5 * time.Second)
		leader, a, b := scraped(t, all["m1"]), scraped(t, of["a"]), scraped(t, of["b"])
		moved := leader[`leasehold_manager_moves_total{namespace="test",outcome="moved"}`]
		if moved == 0 {
			t.Fatal("nothing has moved")
		}
		figures(t, leader, map[string]float64{
			`leasehold_manager_move_duration_seconds{namespace="test"}`:   moved,
			`leasehold_manager_moves{namespace="test",state="under_way"}`: 0,
		})
		figures(t, a, map[string]float64{
			`leasehold_owner_moves_total{direction="out",namespace="test",outcome="moved"}`:  moved,
			`leasehold_owner_moves_total{direction="out",namespace="test",outcome="failed"}`: 0,
			`leasehold_owner_move_duration_seconds{direction="out",namespace="test"}`:        moved,
			`leasehold_owner_move_unserved_seconds{namespace="test"}`:                        moved,
			`leasehold_owner_moves_under_way{direction="out",namespace="test"}`:              0,
			`leasehold_owner_key_space_ratio{namespace="test"}`:                              0.5,
		})
		figures(t, b, map[string]float64{
			`leasehold_owner_moves_total{direction="in",namespace="test",outcome="moved"}`: moved,
			`leasehold_owner_move_duration_seconds{direction="in",namespace="test"}`:       moved,
			`leasehold_owner_moves_under_way{direction="in",namespace="test"}`:             0,
		})
		if a[`leasehold_owner_sent_records_total{namespace="test"}`] == 0 || a[`leasehold_owner_sent_bytes_total{namespace="test"}`] == 0 {
			t.Error("nothing was sent")
		}
	})
}

// TestMetricsOfOneManagerPerRegisterer: two managers cannot share a Registerer at the same time, but one after the other.
func TestMetricsOfOneManagerPerRegisterer(t *testing.T) {
	registry := prometheus.NewRegistry()
	start := func() (*manager.Manager, error) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() }) // the manager has closed it
		return manager.Start(manager.Config{Store: mem.New(), Listener: l, Metrics: registry, Logger: slog.New(slog.DiscardHandler)})
	}
	first, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := start(); leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), "WrapRegistererWith") {
		t.Errorf("a second manager: %v", err)
	}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = first.Close(ctx) // without a handover
		if first, err = start(); err != nil {
			t.Fatal(err)
		}
	}
	_ = first.Close(t.Context())
}
