package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/settings"
)

// options are settings of every kind.
type options struct {
	Name     string
	Managers []string
	Timeout  time.Duration
	Drift    float64
	Most     int
	JSON     bool
}

func (o *options) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.StringVar(&o.Name, "name", "usual", "")
	flags.StringSliceVar(&o.Managers, "managers", []string{"usual:1"}, "")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Second, "")
	flags.Float64Var(&o.Drift, "drift", 1.2, "")
	flags.IntVar(&o.Most, "most", 100, "")
	flags.BoolVar(&o.JSON, "json", false, "")
	return flags
}

// known returns these settings and one of another command.
func known() []string {
	return []string{"name", "managers", "timeout", "drift", "most", "json", "data-dir"}
}

func usual() options {
	return options{Name: "usual", Managers: []string{"usual:1"}, Timeout: 5 * time.Second, Drift: 1.2, Most: 100}
}

// inFile writes a configuration file and returns its path.
func inFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leasehold.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFill(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		env  []string
		file string
		want func(*options)
	}{
		{name: "nothing", want: func(*options) {}},
		{
			name: "file over default", file: "name: from-file\ntimeout: 7s\n",
			want: func(o *options) { o.Name, o.Timeout = "from-file", 7*time.Second },
		},
		{
			name: "environment over file", file: "name: from-file\ntimeout: 7s\n", env: []string{"LEASEHOLD_NAME=from-env"},
			want: func(o *options) { o.Name, o.Timeout = "from-env", 7*time.Second },
		},
		{
			name: "flag over both", args: []string{"--name=from-flag"}, file: "name: from-file\n", env: []string{"LEASEHOLD_NAME=from-env"},
			want: func(o *options) { o.Name = "from-flag" },
		},
		{
			name: "a flag with the default value takes precedence", args: []string{"--name=usual"}, env: []string{"LEASEHOLD_NAME=from-env"},
			want: func(*options) {},
		},
		{
			name: "every kind, from the file", file: "managers: [a:1, b:2]\ndrift: 1.5\nmost: 3\njson: true\n",
			want: func(o *options) { o.Managers, o.Drift, o.Most, o.JSON = []string{"a:1", "b:2"}, 1.5, 3, true },
		},
		{
			name: "every kind, from the environment",
			env:  []string{"LEASEHOLD_MANAGERS=a:1,b:2", "LEASEHOLD_DRIFT=1.5", "LEASEHOLD_MOST=3", "LEASEHOLD_JSON=true"},
			want: func(o *options) { o.Managers, o.Drift, o.Most, o.JSON = []string{"a:1", "b:2"}, 1.5, 3, true },
		},
		{
			name: "a list as commas and as lines", file: "managers:\n- a:1\n- b:2\n", env: []string{"PATH=/bin"},
			want: func(o *options) { o.Managers = []string{"a:1", "b:2"} },
		},
		{
			name: "items of a list may have commas", file: "managers: ['a,b', '\"c', '']\n",
			want: func(o *options) { o.Managers = []string{"a,b", `"c`, ""} },
		},
		{
			name: "lists replace, they do not add up", file: "managers: [a:1]", env: []string{"LEASEHOLD_MANAGERS=b:2"},
			want: func(o *options) { o.Managers = []string{"b:2"} },
		},
		{
			name: "what looks like a number stays as it is written", file: "name: 007\n",
			want: func(o *options) { o.Name = "007" },
		},
		{
			name: "an empty value is a value", env: []string{"LEASEHOLD_NAME="},
			want: func(o *options) { o.Name = "" },
		},
		{
			name: "settings of other commands are no mistake", file: "data-dir: /var/lib\n", env: []string{"LEASEHOLD_DATA_DIR=/x"},
			want: func(*options) {},
		},
		{name: "nothing but comments", file: "# name: x\n", want: func(*options) {}},
		{name: "an empty document", file: "---\n", want: func(*options) {}},
		{
			name: "variables of Kubernetes services",
			env: []string{
				"LEASEHOLD_SERVICE_HOST=10.0.0.1", "LEASEHOLD_SERVICE_PORT=7400", "LEASEHOLD_SERVICE_PORT_GRPC=7400",
				"LEASEHOLD_PORT=tcp://10.0.0.1:7400", "LEASEHOLD_PORT_7400_TCP=tcp://10.0.0.1:7400", "LEASEHOLD_PORT_7400_TCP_ADDR=10.0.0.1",
				"LEASEHOLD_PORT_7400_TCP_PORT=7400", "LEASEHOLD_PORT_7400_TCP_PROTO=tcp", "LEASEHOLD_MANAGERS_PORT=tcp://10.0.0.1:7400",
			},
			want: func(*options) {},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got options
			flags := got.flags()
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			src := settings.Source{Environ: test.env, Known: known()}
			if test.file != "" {
				src.File = inFile(t, test.file)
			}
			if err := settings.Fill(flags, src); err != nil {
				t.Fatal(err)
			}
			want := usual()
			test.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConfigFileFromTheEnvironment(t *testing.T) {
	one, two := inFile(t, "name: one\n"), inFile(t, "name: two\n")
	var o options
	src := settings.Source{Environ: []string{"LEASEHOLD_CONFIG=" + one}, Known: known()}
	if err := settings.Fill(o.flags(), src); err != nil || o.Name != "one" {
		t.Errorf("got %q, %v", o.Name, err)
	}
	src.File = two
	if err := settings.Fill(o.flags(), src); err != nil || o.Name != "two" {
		t.Errorf("the command line does not take precedence: got %q, %v", o.Name, err)
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		name string
		env  []string
		file string
		want string // FILE is the path
	}{
		{"a mistyped variable", []string{"LEASEHOLD_TIMOUT=5s"}, "", `settings "LEASEHOLD_TIMOUT": unknown setting; the closest is LEASEHOLD_TIMEOUT`},
		{"the wrong case", []string{"LEASEHOLD_Timeout=5s"}, "", `settings "LEASEHOLD_Timeout": unknown setting; the closest is LEASEHOLD_TIMEOUT`},
		{"two of them", []string{"LEASEHOLD_NAM=x", "LEASEHOLD_MUST=1"}, "", "settings \"LEASEHOLD_NAM\": unknown setting; the closest is LEASEHOLD_NAME\nsettings \"LEASEHOLD_MUST\": unknown setting; the closest is LEASEHOLD_MOST"},
		{"not a service's port", []string{"LEASEHOLD_PORT=7400"}, "", `settings "LEASEHOLD_PORT": unknown setting`},
		{"a variable of the wrong kind", []string{"LEASEHOLD_TIMEOUT=5"}, "", `settings "LEASEHOLD_TIMEOUT": "5": want a duration such as 90s, 2m or 1h30m`},
		{"a mistyped key", nil, "name: x\n\ntimout: 5s\n", `settings "FILE": line 3: unknown setting "timout"; the closest is timeout`},
		{"a key with an underscore", nil, "data_dir: x\n", `settings "FILE": line 1: unknown setting "data_dir"; the closest is data-dir`},
		{"a file that names a file", nil, "config: x\n", `settings "FILE": line 1: unknown setting "config"`},
		{"a key that is there twice", nil, "name: x\nname: y\n", `settings "FILE": line 2: name is already set in line 1`},
		{"a value of the wrong kind", nil, "name: x\nmost: many\n", `settings "FILE": line 2: most: "many": want a whole number`},
		{"a truth of the wrong kind", nil, "json: perhaps\n", `settings "FILE": line 1: json: "perhaps": want true or false`},
		{"a list where one is wanted", nil, "name: [x, y]\n", `settings "FILE": line 1: name: want one value, not a list`},
		{"a list of lists", nil, "managers:\n- [x]\n", `settings "FILE": line 2: managers: line 2: want a list of plain values`},
		{"sections", nil, "name:\n  first: x\n", `settings "FILE": line 2: name: want a value or a list of values`},
		{"no value", nil, "name:\n", `settings "FILE": line 1: name: the value is missing; write "" for an empty one`},
		{"no mapping", nil, "just words\n", `settings "FILE": line 1: want lines such as "namespace: presence"`},
		{"no YAML", nil, "name: [x\n", `settings "FILE": line 1: did not find expected ',' or ']'`},
		{"two documents", nil, "name: x\n---\nname: y\n", `settings "FILE": the file has more than one YAML document`},
		{"a flood", nil, "# " + strings.Repeat("x", 1<<20), `settings "FILE": the file has more than 1048576 bytes, which is too large for a configuration`},
	} {
		t.Run(test.name, func(t *testing.T) {
			src := settings.Source{Environ: test.env, Known: known()}
			if test.file != "" {
				src.File = inFile(t, test.file)
			}
			err := settings.Fill((&options{}).flags(), src)
			if err == nil {
				t.Fatal("no error")
			}
			want := strings.ReplaceAll(test.want, "FILE", src.File)
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if kind := leasehold.KindOf(err); kind != leasehold.ErrInvalid {
				t.Errorf("kind %v", kind)
			}
		})
	}
}

func TestNoSuchFile(t *testing.T) {
	err := settings.Fill((&options{}).flags(), settings.Source{File: "nosuch.yaml", Known: known()})
	if err == nil || err.Error() != `settings "nosuch.yaml": no such file or directory` {
		t.Errorf("got %v", err)
	}
}

// TestDescribeNamesTheSources: the output names the source of each setting.
func TestDescribeNamesTheSources(t *testing.T) {
	var o options
	flags := o.flags()
	if err := flags.Parse([]string{"--most=5"}); err != nil {
		t.Fatal(err)
	}
	src := settings.Source{
		File: inFile(t, "managers: ['a:1', \"b:2\"]\ntimeout: 1m\n"), Environ: []string{"LEASEHOLD_NAME=007"}, Known: known(),
	}
	if err := settings.Fill(flags, src); err != nil {
		t.Fatal(err)
	}
	text, err := settings.Describe(flags, "timeout")
	if err != nil {
		t.Fatal(err)
	}
	want := `# drift: 1.2
# json: false
managers: ['a:1', 'b:2'] # FILE, line 1: managers
most: 5 # --most
name: "007" # LEASEHOLD_NAME
# timeout is not shown; it is from FILE, line 2: timeout
`
	if diff := cmp.Diff(want, strings.ReplaceAll(text, src.File, "FILE")); diff != "" {
		t.Error(diff)
	}

	// As a configuration file, the output gives the same settings except the secret.
	var again options
	if err := settings.Fill(again.flags(), settings.Source{File: inFile(t, text), Known: known()}); err != nil {
		t.Fatal(err)
	}
	o.Timeout = usual().Timeout
	if diff := cmp.Diff(o, again); diff != "" {
		t.Error(diff)
	}
}
