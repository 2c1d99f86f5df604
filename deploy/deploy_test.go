package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	alertsFile     = "prometheus/alerts.yml"
	dashboardFile  = "grafana/leasehold.json"
	operationsFile = "../docs/operations/alerts.md"
	runbooks       = "https://github.com/leasehold-dev/leasehold/blob/main/docs/operations/alerts.md#"
)

// rules is a Prometheus rule file. Unknown fields are errors.
type rules struct {
	Groups []struct {
		Name  string
		Rules []alert
	}
}

type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func readAlerts(t *testing.T) (out []alert) {
	t.Helper()
	file, err := os.Open(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // read only
	var r rules
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Groups {
		out = append(out, g.Rules...)
	}
	if len(out) == 0 {
		t.Fatal("there are no alerts")
	}
	return out
}

// TestAlerts: each alert has a summary, a description, a severity and a runbook section, and
// every such section has an alert.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(operationsFile)
	if err != nil {
		t.Fatal(err)
	}
	headings := make(map[string]bool)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		headings[anchor(h[1])] = true
	}
	names := make(map[string]bool)
	for _, a := range readAlerts(t) {
		switch {
		case names[a.Alert]:
			t.Errorf("duplicate alert %s", a.Alert)
		case !slices.Contains([]string{"warning", "critical"}, a.Labels["severity"]):
			t.Errorf("%s: severity %q", a.Alert, a.Labels["severity"])
		case a.Annotations["summary"] == "" || a.Annotations["description"] == "":
			t.Errorf("%s: annotations %v", a.Alert, a.Annotations)
		}
		names[a.Alert] = true
		section, ok := strings.CutPrefix(a.Annotations["runbook_url"], runbooks)
		if !ok || section != anchor(a.Alert) || !headings[section] {
			t.Errorf("%s: its runbook is %q, and %s must have the heading %q", a.Alert, a.Annotations["runbook_url"], operationsFile, "### "+a.Alert)
		}
	}
	for _, h := range regexp.MustCompile(`(?m)^### (Leasehold[A-Z].*)$`).FindAllStringSubmatch(string(text), -1) {
		if !names[h[1]] {
			t.Errorf("%s has a section about %s, which is no alert", operationsFile, h[1])
		}
	}
}

// anchor returns GitHub's anchor of a heading.
func anchor(heading string) string {
	heading = regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(heading, " ", "-")
}

// TestMetricsExist: every metric, label and label value in an alert or a panel is exported by a
// running cluster.
func TestMetricsExist(t *testing.T) {
	all := scrape(t)
	for _, a := range readAlerts(t) {
		for _, problem := range all.check(a.Expr) {
			t.Errorf("%s: %s", a.Alert, problem)
		}
		for _, text := range a.Annotations {
			for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				if !all.has(a.Expr, m[1]) {
					t.Errorf("%s: its text names the label %s, which its expression does not have", a.Alert, m[1])
				}
			}
		}
	}
	for title, exprs := range readDashboard(t) {
		for _, expr := range exprs {
			for _, problem := range all.check(expr) {
				t.Errorf("panel %q: %s", title, problem)
			}
		}
	}
	// Every metric is on a panel, or in the list of exceptions.
	shown := ""
	for _, exprs := range readDashboard(t) {
		shown += strings.Join(exprs, "\n")
	}
	for name := range all {
		if base := strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count"); strings.HasPrefix(name, "leasehold_") && !strings.Contains(shown, base) && !slices.Contains(unshown, name) {
			t.Errorf("%s is on no panel and not in unshown", name)
		}
	}
}

// unshown are metrics that are on no panel.
var unshown = []string{
	"leasehold_manager_leader_known", "leasehold_manager_lease_wait_seconds", "leasehold_manager_ready",
	"leasehold_owner_grants_total", "leasehold_owner_joins_total", "leasehold_owner_leader_term", "leasehold_owner_leases",
	"leasehold_owner_move_duration_seconds_bucket", "leasehold_owner_move_duration_seconds_count", "leasehold_owner_move_duration_seconds_sum",
	"leasehold_manager_outages_total", "leasehold_owner_resumptions_total", "leasehold_owner_suspensions_total",
	"leasehold_owner_renewals_total", "leasehold_owner_requests_total", "leasehold_owner_sent_records_total", "leasehold_owner_sessions",
	"leasehold_lookup_calls_total", "leasehold_lookup_changes_total", "leasehold_lookup_contact_losses_total", "leasehold_lookup_contact_lost", "leasehold_lookup_losses_total", "leasehold_lookup_manager_silences_total", "leasehold_lookup_open",
	"leasehold_lookup_ranges", "leasehold_lookup_resyncs_total", "leasehold_lookup_servers", "leasehold_lookup_snapshots_total", "leasehold_lookup_updates_total",
}

// readDashboard returns the expressions of all panels, by title.
func readDashboard(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Templating struct {
			List []struct {
				Name  string
				Type  string
				Query any
			}
		}
		Panels []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]string)
	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range d.Panels {
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" {
					t.Fatalf("panel %q lies on %q", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q is a duplicate, has no title or is too wide", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("panel %q has no target or no description", p.Title)
		}
		for _, target := range p.Targets {
			out[p.Title] = append(out[p.Title], target.Expr)
		}
	}
	for _, v := range d.Templating.List {
		if query, ok := v.Query.(map[string]any); ok {
			expr, _ := query["query"].(string)
			m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(expr)
			if m == nil {
				t.Fatalf("variable %s: %q", v.Name, expr)
			}
			out["$"+v.Name] = append(out["$"+v.Name], "sum by ("+m[2]+") ("+m[1]+")")
		}
	}
	return out
}

// TestRulesByPromtool checks the rules with promtool, if it is installed.
func TestRulesByPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("SKIPPED: promtool is not installed: it has not checked the rules of " + alertsFile)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", alertsFile).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
