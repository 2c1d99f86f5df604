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

// checkCommand checks that a command line in deploy has an existing command and valid flags. It does not run it.
func checkCommand(t *testing.T, where string, args []string) {
	t.Helper()
	cmd, rest, err := rootcmd.New().Find(args)
	if err != nil || !cmd.Runnable() || cmd.HasSubCommands() {
		t.Errorf("%s: leasehold %v: unknown command: %v", where, args, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%s: leasehold %v: %v", where, args, err)
	}
}

// The systemd units run existing commands with valid flags, and always restart them.
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
				checkCommand(t, unit, strings.Fields(command))
			}
		}
		supervised := strings.Contains(string(text), "/leasehold run -- ")
		if !started || !supervised && !strings.Contains(string(text), "\nType=notify\n") {
			t.Errorf("%s starts no leasehold command, or its type is not notify", unit)
		}
		if supervised && !strings.Contains(string(text), "\nKillMode=mixed\n") {
			t.Errorf("%s: the server receives SIGTERM twice", unit)
		}
		// By default, systemd stops restarting a service that ends five times within ten seconds.
		if !strings.Contains(string(text), "\nRestart=always\n") || !strings.Contains(string(text), "\nStartLimitIntervalSec=0\n") {
			t.Errorf("%s is not restarted after repeated failures", unit)
		}
	}
	verifier, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze, which verifies the units, is not installed")
	}
	out, err := exec.Command(verifier, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		// The command is not installed here, and other units are not ours.
		if strings.Contains(line, "leasehold") && !strings.Contains(line, "is not executable") {
			t.Errorf("systemd-analyze: %s (%v)", strings.TrimSpace(line), err)
		}
	}
}

// A manifest has the fields of a Kubernetes manifest that the test checks.
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
	Image   string
	Command []string
	Args    []string
	Ports   []struct {
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

// The manifests run existing commands with valid flags; the ports and paths of their probes exist; and every
// StatefulSet and Deployment has a disruption budget.
func TestKubernetesManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(deployDir, "kubernetes", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v: %v", files, err)
	}
	containers, supervised := 0, 0
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
					containers++
					checkCommand(t, file, c.Args)
					checkProbes(t, file, &c)
				}
				if slices.Contains(c.Command, "leasehold") {
					supervised++
					checkCommand(t, file, c.Command[1:])
				}
				if command := c.Lifecycle.PreStop.Exec.Command; len(command) > 0 {
					checkCommand(t, file, strings.Fields(strings.TrimPrefix(command[len(command)-1], "leasehold ")))
				}
				if shutdown := c.shutdownSeconds(t); m.Spec.Template.Spec.Grace < shutdown {
					t.Errorf("%s: the grace period is %d s, and the shutdown may take %d s", file, m.Spec.Template.Spec.Grace, shutdown)
				}
				if slices.Contains(c.Args, "gateway") && c.Lifecycle.PreStop.Sleep.Seconds == 0 {
					t.Errorf("%s: a gateway has no preStop sleep, so it ends while it still receives connections", file)
				}
			}
		}
		slices.Sort(budgets)
		slices.Sort(sets)
		if !slices.Equal(budgets, sets) {
			t.Errorf("%s: sets %v, disruption budgets %v", file, sets, budgets)
		}
	}
	if containers != 2 || supervised != 1 {
		t.Errorf("%d containers run leasehold, want 2: managers and gateways; %d a supervised server, want 1", containers, supervised)
	}
}

// shutdownSeconds returns the maximum duration of a shutdown according to the flags of a container's commands
// and its preStop sleep.
func (c *container) shutdownSeconds(t *testing.T) int {
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
		portExists := slices.ContainsFunc(c.Ports, func(port struct {
			Name          string
			ContainerPort int `yaml:"containerPort"`
		},
		) bool {
			return port.Name == p.HTTPGet.Port
		})
		if p.HTTPGet.Path != want || !portExists {
			t.Errorf("%s: a probe requests %q on port %q, want %q on a port of the container", file, p.HTTPGet.Path, p.HTTPGet.Port, want)
		}
	}
}
