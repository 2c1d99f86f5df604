package daemon

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestDescribeBuild(t *testing.T) {
	platform := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}}
	for name, test := range map[string]struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		"nothing known":   {"", nil, "leasehold (devel) go1.26.8"},
		"installed":       {"v1.2.3", platform, "leasehold v1.2.3 go1.26.8 linux/arm64"},
		"from a checkout": {"(devel)", append([]debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}, platform...), "leasehold (devel) commit 0123456789ab go1.26.8 linux/arm64"},
		"with changes":    {"(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "012345"}, {Key: "vcs.modified", Value: "true"}}, "leasehold (devel) commit 012345 with changes go1.26.8"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: test.version}, Settings: test.settings}
		if got := describeBuild(info); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestBuildLabels: each part of the build is a separate label, for queries by version or revision.
func TestBuildLabels(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}}
	for _, test := range []struct {
		info  *debug.BuildInfo
		known bool
		want  prometheus.Labels
	}{
		{info, true, prometheus.Labels{"version": "v1.2.3", "revision": "0123456789abcdef", "goversion": "go1.26.8"}},
		{&debug.BuildInfo{GoVersion: "go1.26.8"}, true, prometheus.Labels{"version": "(devel)", "revision": "unknown", "goversion": "go1.26.8"}},
		{nil, false, prometheus.Labels{"version": "(devel)", "revision": "unknown", "goversion": runtime.Version()}},
	} {
		if diff := cmp.Diff(test.want, buildLabels(test.info, test.known)); diff != "" {
			t.Error(diff)
		}
	}
}
