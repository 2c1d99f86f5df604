package style

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestServiceRequiresLittle builds a module that imports the libraries of a service, and checks the modules
// that it requires, whether linked or not.
func TestServiceRequiresLittle(t *testing.T) {
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	_, requirements, _ := strings.Cut(readFile(t, "go.mod"), "\nrequire (")
	for name, text := range map[string]string{
		"go.mod": "module example.com/service\n\ngo 1.26.0\n\nreplace " + module + " => " + here +
			"\n\nrequire " + module + " v0.0.0\n\nrequire (" + requirements,
		"go.sum": readFile(t, "go.sum"),
		"main.go": `package main

import (
	_ "` + module + `/leasegrpc"
	_ "` + module + `/leasehttp"
	_ "` + module + `/leasemap"
	_ "` + module + `/lookup"
	_ "` + module + `/owner"
)

func main() {}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	run("build", "./...")
	// grpc itself requires gonum.org/v1/gonum. Charts need gonum.org/v1/plot.
	heavy := regexp.MustCompile(`etcd|charm|redis|gonum.org/v1/plot|chromedp|cobra|koanf`)
	all := run("list", "-m", "all")
	for line := range strings.Lines(all) {
		if heavy.MatchString(line) {
			t.Errorf("a service requires %s", line)
		}
	}
	if !strings.Contains(all, "google.golang.org/grpc ") {
		t.Errorf("a service does not require grpc: the list is wrong:\n%s", all)
	}
}
