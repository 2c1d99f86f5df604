package style

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/leasehold-dev/leasehold"

// A diet is the set of packages that some packages may link, directly or indirectly. It lists what is
// allowed, so that an unexpected dependency fails the test.
type diet struct {
	packages []string // patterns of go list, relative to the root of the module
	modules  []string // import path prefixes from outside of the module
	ours     []string // import paths within the module, "" for all
	never    []string // import path prefixes, with precedence over the others
}

// pureDiet: the vocabulary, a machine or a policy links only the vocabulary, the standard library without its
// network, and the hash of keys.
var pureDiet = diet{
	packages: append([]string{"./" + machines + "/..."}, relative(purePackages)...),
	modules:  []string{"github.com/cespare/xxhash"},
	ours:     append([]string{machines}, purePackages...),
	never:    []string{"net", "os/exec", "plugin", "log"},
}

// libraryDiet: a service links the owner and the lookup library, and the libraries that route its calls.
// Their dependencies affect the size of its binary, its build time, its version conflicts and its security
// advisories. The libraries use gRPC to the manager, a Prometheus Registerer and OpenTelemetry's API for
// spans, and nothing else: no store, no command line, no terminal, no metrics server and no exporter of
// spans, which are the choice of the application. (net/http is allowed because grpc imports it.)
var libraryDiet = diet{
	packages: []string{"./owner/...", "./lookup/...", "./leasegrpc/...", "./secure/..."},
	modules: []string{
		"github.com/cespare/xxhash",
		"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text", // required by grpc
		"golang.org/x/time/rate", // limits connections
		"google.golang.org/genproto/googleapis/rpc",
		"google.golang.org/grpc",
		"google.golang.org/protobuf",
		"github.com/prometheus/client_golang/prometheus",
		"github.com/beorn7/perks", "github.com/munnerz/goautoneg", "github.com/prometheus/client_model", // required by it
		"github.com/prometheus/common", "github.com/prometheus/procfs",
		"go.opentelemetry.io/otel",
		"github.com/go-logr", "go.opentelemetry.io/auto/sdk", // required by it
	},
	ours: []string{""},
	never: []string{
		module + "/cmd", module + "/lab", module + "/server", module + "/manager", module + "/store", module + "/internal/runtime/store",
		"github.com/prometheus/client_golang/prometheus/promhttp",
		"go.opentelemetry.io/otel/sdk", "go.opentelemetry.io/otel/exporters",
		"net/http/pprof", "plugin", "testing",
	},
}

// fenceDiets: the fence of one database links its client and no other. With database/sql, the application
// chooses the driver.
var fenceDiets = []diet{
	{
		packages: []string{"./fence"},
		modules:  []string{"github.com/cespare/xxhash"},
		ours:     []string{".", "fence"},
		never:    []string{"net", "testing"},
	},
	{
		packages: []string{"./fence/fenceredis"},
		modules: []string{
			"github.com/cespare/xxhash", "github.com/redis/go-redis",
			"go.uber.org/atomic", "golang.org/x/sys", // required by go-redis
		},
		ours:  []string{".", "fence"},
		never: []string{"testing"},
	},
	{
		packages: []string{"./fence/fenceetcd"},
		modules: []string{
			"github.com/cespare/xxhash", "go.etcd.io/etcd/api", "go.etcd.io/etcd/client", "google.golang.org/grpc",
			"github.com/coreos", "github.com/golang/protobuf", "github.com/grpc-ecosystem/grpc-gateway", // required by these
			"go.uber.org/multierr", "go.uber.org/zap", "golang.org/x", "google.golang.org/genproto", "google.golang.org/protobuf",
		},
		ours:  []string{".", "fence"},
		never: []string{module + "/store", module + "/internal/runtime/store", "testing"},
	},
}

func TestPurePackagesLinkNothingElse(t *testing.T) { pureDiet.check(t) }

func TestLibrariesLinkNoStore(t *testing.T) { libraryDiet.check(t) }

func TestFencesLinkOneClient(t *testing.T) {
	for _, d := range fenceDiets {
		d.check(t)
	}
}

func TestAllowedDependencies(t *testing.T) {
	for _, test := range []struct {
		diet    diet
		pkg     listedPackage
		allowed bool
	}{
		{pureDiet, listedPackage{ImportPath: "fmt", Standard: true}, true},
		{pureDiet, listedPackage{ImportPath: "os", Standard: true}, true}, // fmt imports it
		{pureDiet, listedPackage{ImportPath: "net/http", Standard: true}, false},
		{pureDiet, listedPackage{ImportPath: "net", Standard: true}, false},
		{pureDiet, listedPackage{ImportPath: "github.com/cespare/xxhash/v2"}, true},
		{pureDiet, listedPackage{ImportPath: "github.com/cespare/xxhash2"}, false},
		{pureDiet, listedPackage{ImportPath: "go.etcd.io/etcd/client/v3"}, false},
		{pureDiet, listedPackage{ImportPath: "google.golang.org/grpc"}, false},
		{pureDiet, listedPackage{ImportPath: module}, true},
		{pureDiet, listedPackage{ImportPath: module + "/internal/core/mono"}, true},
		{pureDiet, listedPackage{ImportPath: module + "/internal/core/machine/owner"}, true},
		{pureDiet, listedPackage{ImportPath: module + "/lab/sim"}, false},
		{pureDiet, listedPackage{ImportPath: module + "/owner"}, false},
		{libraryDiet, listedPackage{ImportPath: "google.golang.org/grpc/codes"}, true},
		{libraryDiet, listedPackage{ImportPath: module + "/internal/runtime/wire"}, true},
		{libraryDiet, listedPackage{ImportPath: module + "/server/store/etcd"}, false},
		{libraryDiet, listedPackage{ImportPath: module + "/manager"}, false},
		{libraryDiet, listedPackage{ImportPath: "go.etcd.io/etcd/client/v3"}, false},
		{libraryDiet, listedPackage{ImportPath: "github.com/spf13/cobra"}, false},
		{libraryDiet, listedPackage{ImportPath: "charm.land/bubbletea/v2"}, false},
	} {
		if got := test.diet.allows(test.pkg); got != test.allowed {
			t.Errorf("%s: allowed %t, want %t", test.pkg.ImportPath, got, test.allowed)
		}
	}
}

func (d diet) allows(p listedPackage) bool {
	within := func(prefix string) bool {
		return p.ImportPath == prefix || strings.HasPrefix(p.ImportPath, prefix+"/")
	}
	if slices.ContainsFunc(d.never, within) {
		return false
	}
	if within(module) {
		return slices.ContainsFunc(d.ours, func(ours string) bool {
			if ours == "." {
				return p.ImportPath == module
			}
			return within(strings.TrimSuffix(module+"/"+ours, "/"))
		})
	}
	return p.Standard || slices.ContainsFunc(d.modules, within)
}

// check lists the linked packages and reports each that is not allowed, with its importers.
func (d diet) check(t *testing.T) {
	t.Helper()
	linked := list(t, d.packages...)
	for _, p := range linked {
		if d.allows(p) {
			continue
		}
		var importers []string
		for _, q := range linked {
			if slices.Contains(q.Imports, p.ImportPath) {
				importers = append(importers, q.ImportPath)
			}
		}
		t.Errorf("%q must not link %s, which is imported by %q", d.packages, p.ImportPath, importers)
	}
}

// listedPackage is a package as listed by go list.
type listedPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// list returns the packages that match the patterns and all that they link.
func list(t *testing.T, patterns ...string) []listedPackage {
	t.Helper()
	args := append([]string{"list", "-deps", "-json=ImportPath,Standard,Imports", "--"}, patterns...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd, err)
	}
	var packages []listedPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("%v: %v", cmd, err)
		}
		packages = append(packages, p)
	}
}

// relative converts directories to patterns of go list.
func relative(dirs []string) []string {
	var patterns []string
	for _, dir := range dirs {
		patterns = append(patterns, "./"+dir)
	}
	return patterns
}
