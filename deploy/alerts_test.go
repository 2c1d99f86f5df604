package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// scrapeEvery is the scrape interval in the tests.
const scrapeEvery = 15 * time.Second

// A ruleTest is a test of "promtool test rules".
type ruleTest struct {
	Name     string     `json:"name"`
	Interval string     `json:"interval"`
	Series   []series   `json:"input_series"`
	Exprs    []exprTest `json:"promql_expr_test"`
}

// A series is the values of a metric, one for each scrape.
type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type exprTest struct {
	Expr    string   `json:"expr"`
	Time    string   `json:"eval_time"`
	Samples []sample `json:"exp_samples"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// firing returns a test that an alert fires, or does not, at a time.
func firing(alert string, at time.Duration, want bool) exprTest {
	value := 0.0
	if want {
		value = 1
	}
	return exprTest{fmt.Sprintf(`clamp_max(count(ALERTS{alertname=%q,alertstate="firing"}), 1) or vector(0)`, alert), at.String(), []sample{{"{}", value}}}
}

// promtoolTest evaluates alerts with promtool.
func promtoolTest(t *testing.T, alerts []alert, tests ...ruleTest) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED: promtool is not installed: the alerts of " + alertsFile + " were not evaluated")
	}
	for i := range tests {
		tests[i].Interval = scrapeEvery.String()
	}
	var rules []map[string]any
	for _, a := range alerts {
		rule := map[string]any{"alert": a.Alert, "expr": a.Expr, "labels": a.Labels, "annotations": a.Annotations}
		if a.For != "" {
			rule["for"] = a.For
		}
		rules = append(rules, rule)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yml"), map[string]any{"groups": []any{map[string]any{"name": "all", "rules": rules}}})
	write(t, filepath.Join(dir, "tests.yml"), map[string]any{"rule_files": []string{"rules.yml"}, "evaluation_interval": scrapeEvery.String(), "tests": tests})
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", filepath.Join(dir, "tests.yml")).CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// write writes JSON, which is YAML.
func write(t *testing.T, file string, document any) {
	t.Helper()
	text, err := json.Marshal(document)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An alarm is an alert, series that make it fire, and similar series that do not. The values
// are in the notation of promtool: "0+1x40" is 0, 1, 2 and so on, 40 times.
type alarm struct {
	alert string
	fires []series
	at    time.Duration
	quiet []series
}

// of returns a series of a manager, a server or a caller.
func of(metric, labels, values string) series {
	if labels != "" {
		labels = "," + labels
	}
	return series{metric + `{job="j",instance="i"` + labels + "}", values}
}

const (
	minutes = "+0x200" // after a value: constant until the end
	grows   = "0+1x200"
	step    = "0 0 0 1+0x200" // once
	spaceX  = `namespace="x"`
)

var alarms = []alarm{
	{"LeaseholdNoLeader", []series{of("leasehold_manager_leader", "", "0"+minutes)}, time.Minute, []series{of("leasehold_manager_leader", "", "1 0 1"+minutes)}},
	{"LeaseholdManagersAbsent", []series{of("up", "", "0"+minutes)}, 2 * time.Minute, []series{of("leasehold_manager_leader", "", "0"+minutes)}},
	{
		"LeaseholdManagerDown",
		[]series{of("leasehold_manager_leader", "", "1"+minutes), {`up{job="j",instance="other"}`, "0" + minutes}},
		2 * time.Minute,
		[]series{of("leasehold_manager_leader", "", "1"+minutes), {`up{job="database",instance="d"}`, "0" + minutes}},
	},
	{"LeaseholdManagerNotReady", []series{of("leasehold_manager_ready", "", "0"+minutes)}, 2 * time.Minute, []series{of("leasehold_manager_ready", "", "0 0 0 1"+minutes)}},
	{
		"LeaseholdLeaderChangesOften",
		[]series{of("leasehold_manager_leader_changes_total", "", grows)},
		5 * time.Minute,
		[]series{of("leasehold_manager_leader_changes_total", "", "1 1 2 2 3 3 1 2 2"+minutes)},
	}, // a rolling restart
	{"LeaseholdLeadershipLapsed", []series{of("leasehold_manager_leadership_lapses_total", "", step)}, 2 * time.Minute, []series{of("leasehold_manager_leadership_lapses_total", "", "1"+minutes)}},
	{"LeaseholdStoreSlow", storeTakes("0"+minutes, grows), 12 * time.Minute, storeTakes(grows, grows)},
	{"LeaseholdStoreErrors", []series{of("leasehold_manager_store_errors_total", `request="append"`, grows)}, 20 * time.Minute, []series{of("leasehold_manager_store_errors_total", `request="append"`, step)}},
	{"LeaseholdManagerBehind", []series{of("leasehold_manager_queue_length", "", "3000"+minutes)}, 4 * time.Minute, []series{of("leasehold_manager_queue_length", "", "3000 3000 0"+minutes)}},
	{"LeaseholdRefusals", []series{of("leasehold_manager_refused_total", `kind="limit_reached"`, grows)}, 12 * time.Minute, []series{of("leasehold_manager_refused_total", `kind="not_the_leader"`, grows)}},
	{"LeaseholdLimitNear", []series{of("leasehold_manager_limit_used_ratio", `resource="open_files"`, "0.85"+minutes)}, 6 * time.Minute, []series{of("leasehold_manager_limit_used_ratio", `resource="open_files"`, "0.7"+minutes)}},
	{
		"LeaseholdKeysUnowned",
		[]series{of("leasehold_manager_unowned_ratio", spaceX, "0.1"+minutes), of("leasehold_manager_lsn", spaceX, "7"+minutes)},
		time.Minute,
		[]series{of("leasehold_manager_unowned_ratio", spaceX, "1"+minutes), of("leasehold_manager_lsn", spaceX, "0"+minutes)},
	},
	{
		"LeaseholdNoOwners",
		[]series{of("leasehold_manager_owners", `state="member",`+spaceX, "0"+minutes), of("leasehold_manager_lsn", spaceX, "7"+minutes)},
		time.Minute,
		[]series{of("leasehold_manager_owners", `state="member",`+spaceX, "0"+minutes), of("leasehold_manager_lsn", spaceX, "0"+minutes)},
	},
	{"LeaseholdLosses", []series{of("leasehold_manager_losses_total", `cause="expired",`+spaceX, step)}, 2 * time.Minute, []series{of("leasehold_manager_losses_total", `cause="released",`+spaceX, grows)}},
	{"LeaseholdMovesFail", []series{of("leasehold_manager_moves_total", `outcome="failed",`+spaceX, grows)}, 3 * time.Minute, []series{of("leasehold_manager_moves_total", `outcome="cancelled",`+spaceX, grows)}},
	{"LeaseholdDrainStuck", []series{of("leasehold_manager_owners_leaving", spaceX, "1"+minutes)}, 31 * time.Minute, []series{of("leasehold_manager_owners_leaving", spaceX, "1+0x80 0"+minutes)}},
	{"LeaseholdPolicyFails", []series{of("leasehold_manager_policy_failures_total", spaceX, grows)}, 8 * time.Minute, []series{of("leasehold_manager_policy_failures_total", spaceX, step)}},
	{"LeaseholdRenewalsLate", lasts("3", "3.5"), time.Minute, lasts("3", "4.5")}, // a failover while a renewal is due
	{"LeaseholdLeasesSuspended", []series{of("leasehold_owner_suspended_leases", spaceX, "3"+minutes)}, time.Minute, []series{of("leasehold_owner_suspended_leases", spaceX, "0"+minutes)}},
	{"LeaseholdLeasesExpired", []series{of("leasehold_owner_revocations_total", `cause="expired",`+spaceX, step)}, 2 * time.Minute, []series{of("leasehold_owner_revocations_total", `cause="moved",`+spaceX, grows)}},
	{
		"LeaseholdOwnerHoldsNothing",
		[]series{of("leasehold_owner_sessions", spaceX, "1"+minutes), of("leasehold_owner_leases", spaceX, "0"+minutes), of("leasehold_owner_suspended_leases", spaceX, "0"+minutes)},
		6 * time.Minute,
		[]series{of("leasehold_owner_sessions", spaceX, "1"+minutes), of("leasehold_owner_leases", spaceX, "0"+minutes), of("leasehold_owner_suspended_leases", spaceX, "3"+minutes)},
	},
	{"LeaseholdClockTrouble", []series{of("leasehold_owner_clock_trouble_total", `kind="slow",`+spaceX, step)}, 2 * time.Minute, []series{of("leasehold_owner_clock_trouble_total", `kind="slow",`+spaceX, "1"+minutes)}},
	{
		"LeaseholdLookupStale",
		[]series{of("leasehold_lookup_age_seconds", spaceX, "20"+minutes), of("leasehold_lookup_stale_after_seconds", spaceX, "30"+minutes)},
		time.Minute,
		[]series{of("leasehold_lookup_age_seconds", spaceX, "10"+minutes), of("leasehold_lookup_stale_after_seconds", spaceX, "30"+minutes)},
	},
	{"LeaseholdContactLost", []series{of("leasehold_lookup_contact_losses_total", spaceX, step)}, 2 * time.Minute, []series{of("leasehold_lookup_losses_total", `cause="expired",`+spaceX, step)}},
	{
		"LeaseholdCallsRetried",
		[]series{of("leasehold_lookup_call_retries_total", `kind="no_owner",`+spaceX, "0+3x200"), of("leasehold_lookup_calls_total", spaceX, "0+10x200")},
		17 * time.Minute,
		[]series{of("leasehold_lookup_call_retries_total", `kind="no_owner",`+spaceX, grows), of("leasehold_lookup_calls_total", spaceX, "0+10x200")},
	},
	{
		"LeaseholdGatewayFails",
		[]series{of("leasehold_gateway_failures_total", `kind="indeterminate",`+spaceX, grows), of("leasehold_gateway_requests_total", `code="200",`+spaceX, "0+10x200")},
		12 * time.Minute,
		[]series{of("leasehold_gateway_failures_total", `kind="invalid",`+spaceX, grows), of("leasehold_gateway_requests_total", `code="200",`+spaceX, "0+10x200")},
	},
}

// storeTakes returns store requests, a part of which takes less than half a second.
func storeTakes(quick, all string) []series {
	const metric = "leasehold_manager_store_request_duration_seconds_bucket"
	return []series{of(metric, `request="append",le="0.5"`, quick), of(metric, `request="append",le="1"`, all), of(metric, `request="append",le="+Inf"`, all)}
}

// lasts returns a server whose leases of 10 s have a remaining validity.
func lasts(leases, validity string) []series {
	return []series{
		of("leasehold_owner_leases", spaceX, leases+minutes), of("leasehold_owner_validity_seconds", spaceX, validity+minutes),
		of("leasehold_owner_lease_duration_seconds", spaceX, "10"+minutes),
	}
}

// TestAlertsFire: each alert fires for its condition, and not for similar series.
func TestAlertsFire(t *testing.T) {
	for _, a := range readAlerts(t) {
		t.Run(a.Alert, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(alarms, func(tried alarm) bool { return tried.alert == a.Alert })
			if i < 0 {
				t.Fatal("the alert has no test case")
			}
			tried := alarms[i]
			quiet := ruleTest{Name: "not " + a.Alert, Series: tried.quiet}
			for at := time.Duration(0); at <= tried.at+time.Minute; at += time.Minute {
				quiet.Exprs = append(quiet.Exprs, firing(a.Alert, at, false))
			}
			promtoolTest(t, []alert{a}, ruleTest{Name: a.Alert, Series: tried.fires, Exprs: []exprTest{firing(a.Alert, tried.at, true)}}, quiet)
		})
	}
}
