package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func info() *buildinfo.BuildInfo {
	return &buildinfo.BuildInfo{
		GoVersion: "go1.26.8", Path: "example.com/cmd/x", Main: debug.Module{Path: "example.com", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "github.com/Z/z", Version: "v0.0.0-2026+incompatible", Sum: "h1:zzz="},
			{Path: "b.example", Version: "v1.0.0", Replace: &debug.Module{Path: "a.example/fork", Version: "v1.0.1", Sum: "h1:aaa="}},
		},
		Settings: []debug.BuildSetting{{Key: "-trimpath", Value: "true"}, {Key: "CGO_ENABLED", Value: "0"}},
	}
}

func TestDescribe(t *testing.T) {
	want := document{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{component{
			Type: "application", Ref: "x", Name: "x", Version: "v1.2.3",
			Properties: []property{{"go:build:-trimpath", "true"}, {"go:build:CGO_ENABLED", "0"}},
		}},
		Components: []component{
			{Type: "library", Ref: "pkg:golang/stdlib@go1.26.8", Name: "stdlib", Version: "go1.26.8", PURL: "pkg:golang/stdlib@1.26.8"},
			{Type: "library", Ref: "pkg:golang/a.example/fork@v1.0.1", Name: "a.example/fork", Version: "v1.0.1", PURL: "pkg:golang/a.example/fork@v1.0.1", Properties: []property{{"go:sum", "h1:aaa="}}},
			{Type: "library", Ref: "pkg:golang/github.com/z/z@v0.0.0-2026+incompatible", Name: "github.com/Z/z", Version: "v0.0.0-2026+incompatible", PURL: "pkg:golang/github.com/z/z@v0.0.0-2026+incompatible", Properties: []property{{"go:sum", "h1:zzz="}}},
		},
		Dependencies: []dependency{{"x", []string{"pkg:golang/stdlib@go1.26.8", "pkg:golang/a.example/fork@v1.0.1", "pkg:golang/github.com/z/z@v0.0.0-2026+incompatible"}}},
	}
	if diff := cmp.Diff(want, describe("x", info())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A real binary: what it is made of is what go.sum has, and it is said twice in the same way.
func TestBinary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "presence")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../examples/presence").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	var first, second, table bytes.Buffer
	for out, args := range map[*bytes.Buffer][]string{&first: {path}, &second: {path}, &table: {"-table", path}} {
		if err := run(args, out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("it is another the second time")
	}
	var doc document
	if err := json.Unmarshal(first.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range doc.Components[1:] {
		found = found || c.Name == "google.golang.org/grpc"
		line := c.Name + " " + c.Version + " " + c.Properties[0].Value + "\n"
		if !strings.Contains(string(sums), line) {
			t.Errorf("go.sum does not have %s", line)
		}
		if !strings.Contains(table.String(), c.Name) {
			t.Errorf("the table does not have %s", c.Name)
		}
	}
	if !found {
		t.Errorf("grpc is not in %s", first.String())
	}
}

func TestRefuses(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"nosuch"}, {"main.go"}} {
		if err := run(args, new(bytes.Buffer)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
