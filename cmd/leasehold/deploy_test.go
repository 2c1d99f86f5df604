package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold-dev/leasehold/server/command/rootcmd"
)

const deployDir = "../../deploy"

// parse parses what deploy has the command do, up to doing it.
func parse(t *testing.T, where string, args []string) {
	t.Helper()
	cmd, rest, err := rootcmd.New().Find(args)
	if err != nil || !cmd.Runnable() {
		t.Errorf("%s: leasehold %v: there is no such command: %v", where, args, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: leasehold %v: %v", where, args, err)
	}
}

// What the units start is there, with the flags that they give it.
func TestSystemdUnits(t *testing.T) {
	units, err := filepath.Glob(filepath.Join(deployDir, "systemd", "*.service"))
	if err != nil || len(units) < 3 {
		t.Fatalf("%v: %v", units, err)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		started := false
		for line := range strings.Lines(string(text)) {
			command, ok := strings.CutPrefix(line, "ExecStart=/usr/local/bin/leasehold ")
			if ok {
				started = true
				parse(t, unit, strings.Fields(command))
			}
		}
		if !started || !strings.Contains(string(text), "\nType=notify\n") {
			t.Errorf("%s starts nothing of ours, or does not wait until it is ready", unit)
		}
		// Unless told, systemd gives up on what ends five times within ten seconds.
		if !strings.Contains(string(text), "\nRestart=always\n") || !strings.Contains(string(text), "\nStartLimitIntervalSec=0\n") {
			t.Errorf("%s is given up when it ends a few times in a row", unit)
		}
	}
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is not installed, so that nobody but us has verified the units")
	}
	out, err := exec.Command(verifier, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// The command is not installed here, and other units are not ours.
		if strings.Contains(line, "leasehold") && !strings.Contains(line, "is not executable") {
			t.Errorf("systemd-analyze: %s (%v)", strings.TrimSpace(line), err)
		}
	}
}

// A manifest is what we look at in one.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Replicas int
		Selector yaml.Node
		Ports    []struct {
			Name string
			Port int
		}
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []container
			}
		}
	}
}

type container struct {
	Image string
	Args  []string
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Lifecycle      struct {
		PreStop struct {
			Exec  struct{ Command []string }
			Sleep struct{ Seconds int }
		} `yaml:"preStop"`
	}
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func readManifests(t *testing.T, path string) (all []manifest) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, m)
	}
}

// What the manifests start is there, with the flags, ports and paths that they name; and
// nothing that has several copies is without a disruption budget.
func TestKubernetesManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(deployDir, "kubernetes", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v: %v", files, err)
	}
	ours := 0
	for _, file := range files {
		var budgets, sets []string
		for _, m := range readManifests(t, file) {
			switch m.Kind {
			case "PodDisruptionBudget":
				budgets = append(budgets, m.Metadata.Name)
			case "StatefulSet", "Deployment":
				sets = append(sets, m.Metadata.Name)
			}
			for _, c := range m.Spec.Template.Spec.Containers {
				if c.Image == "leasehold" {
					ours++
					parse(t, file, c.Args)
					checkProbes(t, file, &c)
				}
				if command := c.Lifecycle.PreStop.Exec.Command; len(command) > 0 {
					parse(t, file, strings.Fields(strings.TrimPrefix(command[len(command)-1], "leasehold ")))
				}
				if needs := c.endsIn(t); m.Spec.Template.Spec.Grace < needs {
					t.Errorf("%s: it is killed after %d s, and may take %d s to end", file, m.Spec.Template.Spec.Grace, needs)
				}
				if slices.Contains(c.Args, "gateway") && c.Lifecycle.PreStop.Sleep.Seconds == 0 {
					t.Errorf("%s: a gateway ends at once, while connections still come", file)
				}
			}
		}
		slices.Sort(budgets)
		slices.Sort(sets)
		if !slices.Equal(budgets, sets) {
			t.Errorf("%s has %v, and disruption budgets for %v", file, sets, budgets)
		}
	}
	if ours != 2 {
		t.Errorf("%d containers run the command, want those of managers and gateways", ours)
	}
}

// endsIn is how many seconds a container may take to end, as far as it says so itself.
func (c *container) endsIn(t *testing.T) int {
	t.Helper()
	var all time.Duration
	words := c.Args
	for _, command := range c.Lifecycle.PreStop.Exec.Command {
		words = append(words, strings.Fields(strings.ReplaceAll(command, "--within ", "--within="))...)
	}
	for _, w := range words {
		for _, flag := range []string{"--drain=", "--within="} {
			if value, ok := strings.CutPrefix(w, flag); ok {
				d, err := time.ParseDuration(value)
				if err != nil {
					t.Error(err)
				}
				all += d
			}
		}
	}
	return int(all.Seconds()) + c.Lifecycle.PreStop.Sleep.Seconds
}

func checkProbes(t *testing.T, file string, c *container) {
	t.Helper()
	for want, p := range map[string]probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		named := slices.ContainsFunc(c.Ports, func(port struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		},
		) bool {
			return port.Name == p.HTTPGet.Port
		})
		if p.HTTPGet.Path != want || !named {
			t.Errorf("%s: a probe asks for %q on port %q, want %q on one of the container's", file, p.HTTPGet.Path, p.HTTPGet.Port, want)
		}
	}
}
