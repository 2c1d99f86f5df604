package owner

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
)

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*Config)
		says  string
	}{
		{"no namespace", func(c *Config) { c.Namespace = "" }, "namespace"},
		{"bad namespace", func(c *Config) { c.Namespace = "Presence" }, "use a-z"},
		{"no managers", func(c *Config) { c.Managers = nil }, "Managers has 0 addresses"},
		{"too many managers", func(c *Config) { c.Managers = make([]string, 65) }, "65"},
		{"manager without port", func(c *Config) { c.Managers = []string{"manager"} }, "Managers: want host:port"},
		{"no addr", func(c *Config) { c.Addr = "" }, "Addr: an address is missing"},
		{"addr without port", func(c *Config) { c.Addr = "10.0.0.1" }, "Addr: want host:port"},
		{"addr without host", func(c *Config) { c.Addr = ":8080" }, "callers can reach"},
		{"addr to listen on", func(c *Config) { c.Addr = "0.0.0.0:8080" }, "callers can reach"},
		{"addr to listen on, IPv6", func(c *Config) { c.Addr = "[::]:8080" }, "callers can reach"},
		{"port 0", func(c *Config) { c.Addr = "10.0.0.1:0" }, `the port is "0"`},
		{"port by name", func(c *Config) { c.Addr = "10.0.0.1:http" }, `the port is "http"`},
		{"long addr", func(c *Config) { c.Addr = strings.Repeat("a", 300) + ":1" }, "want at most 256"},
		{"name for nobody", func(c *Config) { c.Name = "a\nb" }, "not printable"},
		{"long name by default", func(c *Config) { c.Addr = strings.Repeat("a", 200) + ":1" }, "owner id"},
		{"no weight", func(c *Config) { c.Weight = -1 }, "weight"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := Config{Namespace: testNamespace, Managers: []string{"manager:1"}, Addr: "10.0.0.1:8080"}
			test.spoil(&cfg)
			_, err := Join(t.Context(), cfg)
			wantError(t, err, leasehold.Invalid, test.says)
		})
	}
}

func TestConfigDefaults(t *testing.T) {
	managers := []string{"manager:1"}
	cfg := Config{Namespace: testNamespace, Managers: managers, Addr: "[2001:db8::1]:8080"}
	if err := cfg.validate(); err != nil {
		t.Fatal(err)
	}
	managers[0] = "changed"
	if cfg.Name != "[2001:db8::1]:8080" || cfg.Weight != 1 || cfg.Logger == nil || cfg.Credentials == nil || cfg.Managers[0] != "manager:1" {
		t.Errorf("%+v", cfg)
	}
	a, err := cfg.holder()
	if err != nil {
		t.Fatal(err)
	}
	b, err := cfg.holder()
	if err != nil {
		t.Fatal(err)
	}
	if a.Session == b.Session {
		t.Error("two sessions are the same")
	}
}
