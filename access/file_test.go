package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

const hash64 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// The error of an invalid file has the file, the line and the reason.
func TestInvalidFiles(t *testing.T) {
	const owner = "rules:\n  - identity: spiffe://d/o/{name}\n    role: owner\n    namespaces: [a]\n"
	const exact = "rules:\n  - identity: spiffe://d/o/x\n    role: owner\n    namespaces: [a]\n"
	const lookup = "rules:\n  - identity: spiffe://d/l\n    role: lookup\n    namespaces: [a]\n"
	const alice = "tokens:\n  - name: alice\n    sha256: " + hash64 + "\n"
	for name, test := range map[string]struct{ text, want string }{
		"empty":                    {"", "it is empty"},
		"comment":                  {"# nothing\n", "f"},
		"null":                     {"null\n", "f:1"},
		"a list":                   {"- a\n", "f:1"},
		"no rules":                 {alice, "no rules"},
		"rules empty":              {"rules: []\n", "f:1"},
		"rules null":               {"rules:\n", "rules must be a list"},
		"rules a text":             {"rules: all\n", "rules must be a list"},
		"a rule a text":            {"rules: [all]\n", "want the fields identity, role, namespaces, names"},
		"invalid YAML":             {"rules: [\n", "line"},
		"tab":                      {"rules:\n\t- a\n", "line 2"},
		"not UTF-8":                {"rules: \xff\n", "f"},
		"two documents":            {lookup + "---\n" + lookup, "more than one document"},
		"unknown field":            {lookup + "more: 1\n", `f:5": unknown field "more"`},
		"unknown field of a rule":  {lookup + "    namespace: b\n", `f:5": unknown field "namespace"`},
		"field twice":              {lookup + "    role: owner\n", `f:5": the field role is repeated`},
		"rules twice":              {lookup + lookup, `f:5": the field rules is repeated`},
		"no identity":              {"rules:\n  - role: lookup\n    namespaces: [a]\n", "no identity"},
		"no role":                  {"rules:\n  - identity: spiffe://d/l\n    namespaces: [a]\n", "no role"},
		"no namespaces":            {"rules:\n  - identity: spiffe://d/l\n    role: lookup\n", "no namespaces"},
		"unknown role":             {strings.Replace(lookup, "role: lookup", "role: admin", 1), `f:3": there is no role "admin"`},
		"role in capitals":         {strings.Replace(lookup, "role: lookup", "role: Lookup", 1), "no role"},
		"namespaces empty":         {strings.Replace(lookup, "[a]", "[]", 1), "namespaces is empty"},
		"namespaces a text":        {strings.Replace(lookup, "[a]", "a", 1), "namespaces must be a list"},
		"a namespace twice":        {strings.Replace(lookup, "[a]", "[a, a]", 1), "twice"},
		"star and more":            {strings.Replace(lookup, "[a]", `["*", a]`, 1), "must be the only entry"},
		"a bad namespace":          {strings.Replace(lookup, "[a]", "[A]", 1), `f:4`},
		"a number":                 {strings.Replace(lookup, "[a]", "[1.10]", 1), "quotes"},
		"a namespace null":         {strings.Replace(lookup, "[a]", "[~]", 1), "must be a string"},
		"manager of one":           {"rules:\n  - identity: spiffe://d/m\n    role: manager\n    namespaces: [a]\n", `f:4": managers need all namespaces`},
		"identity of nothing":      {strings.Replace(lookup, "spiffe://d/l", `""`, 1), "f:2"},
		"identity is a name":       {strings.Replace(lookup, "spiffe://d/l", "alice", 1), "f:2"},
		"identity is not one":      {strings.Replace(lookup, "spiffe://d/l", "spiffe://D/l", 1), "f:2"},
		"dns in capitals":          {strings.Replace(lookup, "spiffe://d/l", "dns:A.b", 1), "lower case"},
		"{name} of a lookup":       {strings.Replace(lookup, "spiffe://d/l", "spiffe://d/{name}", 1), "stands for an owner's name"},
		"{name} twice":             {strings.Replace(owner, "{name}", "{name}/{name}", 1), "once"},
		"{name} in a segment":      {strings.Replace(owner, "{name}", "x{name}", 1), "whole segment"},
		"{name} for a host":        {strings.Replace(owner, "spiffe://d/o", "spiffe://{name}/o", 1), "f:2"},
		"an owner without names":   {exact, `f:2": the rule has no names`},
		"names empty":              {exact + "    names: []\n", "names is empty"},
		"names of a lookup":        {lookup + "    names: [a]\n", `f:5": names are for owners`},
		"a name twice":             {exact + "    names: [a, a]\n", "twice"},
		"a bad name":               {exact + "    names: [\"a\\n\"]\n", "f:5"},
		"{name} in a name":         {exact + "    names: [\"{name}\"]\n", "if and only if"},
		"no {name} in a name":      {owner + "    names: [a]\n", "if and only if"},
		"the same rule":            {lookup + lookup[len("rules:\n"):], `f:5": the rule in line 2`},
		"the same in part":         {lookup + strings.Replace(lookup[len("rules:\n"):], "[a]", "[b, a]", 1), `f:5": the rule in line 2`},
		"the same for all":         {lookup + strings.Replace(lookup[len("rules:\n"):], "[a]", `["*"]`, 1), `f:5": the rule in line 2`},
		"a token that is not":      {strings.Replace(lookup, "spiffe://d/l", "token:alice", 1), `no token "alice"`},
		"a token as owner":         {alice + strings.Replace(exact, "spiffe://d/o/x", "token:alice", 1), "a token cannot be owner"},
		"a token as manager":       {alice + "rules:\n  - identity: token:alice\n    role: manager\n    namespaces: [\"*\"]\n", "a token cannot be manager"},
		"a token without a hash":   {lookup + "tokens:\n  - name: a\n", "a name and a sha256"},
		"a token without a name":   {lookup + "tokens:\n  - sha256: " + hash64 + "\n", "a name and a sha256"},
		"a bad token's name":       {lookup + strings.Replace(alice, "alice", "al ice", 1), "f:6"},
		"a short hash":             {lookup + strings.Replace(alice, hash64, hash64[2:], 1), `f:7": sha256 must have 64`},
		"no hash":                  {lookup + strings.Replace(alice, hash64, strings.Repeat("x", 64), 1), "sha256 must have 64"},
		"a hash that is a list":    {lookup + strings.Replace(alice, hash64, "["+hash64+"]", 1), "sha256 must have 64"},
		"two of one name":          {lookup + alice + strings.Replace(alice[len("tokens:\n"):], hash64, strings.Repeat("0", 64), 1), "two tokens"},
		"two of one hash":          {lookup + alice + strings.Replace(alice[len("tokens:\n"):], "alice", "bob", 1), "same sha256"},
		"expires some day":         {lookup + alice + "    expires: soon\n", "f:8"},
		"expires on no day":        {lookup + alice + "    expires: 2027-02-30\n", "expires must be a day"},
		"an anchor":                {strings.Replace(lookup, "[a]", "&n [a]", 1), "anchors"},
		"an alias":                 {strings.Replace(lookup, "spiffe", "&i spiffe", 1) + "  - *i\n", "anchors"},
		"a merge":                  {"rules:\n  - <<: {role: lookup}\n", "anchors"},
		"a tag":                    {strings.Replace(lookup, "[a]", "[!!str 1]", 1), "tag"},
		"too many patterns":        {manyPatterns(), "more than 1000"},
		"too many rules":           {"rules: [" + strings.Repeat("a,", 10_001) + "]\n", "the maximum is 10000"},
		"laughs":                   {"a: &a [x,x]\nb: &b [*a,*a]\nrules: [*b]\n", "anchors"},
		"a bracket 100 times 1000": {strings.Repeat("[", 100_000), "f"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse("f", []byte(test.text))
			if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `"f`) {
				t.Errorf("%v\nwant an error with %q", err, test.want)
			}
		})
	}
}

func manyPatterns() string {
	var text strings.Builder
	text.WriteString("rules:\n")
	for i := range 1001 {
		text.WriteString("  - {identity: \"spiffe://d/" + strings.Repeat("x", i+1) + "/{name}\", role: owner, namespaces: [a]}\n")
	}
	return text.String()
}

func TestValidFile(t *testing.T) {
	b, err := parse("f", []byte(`# all features
rules:
  - identity: "spiffe://d/o/{name}"
    role: owner
    namespaces: [a, "1.0", 'null']
  - {identity: spiffe://d/o/x, role: lookup, namespaces: [a]}
  - {identity: spiffe://d/o/x, role: lookup, namespaces: [b]}
  - {identity: spiffe://d/o/x, role: operator, namespaces: [a]}
  - identity: token:Alice.B-1_x
    role: operator
    namespaces: ["*"]
tokens:
  - name: Alice.B-1_x
    sha256: 0000000000000000000000000000000000000000000000000000000000000000
    expires: 2027-01-02
  - name: idle
    sha256: `+hash64+`
    expires: 2027-01-02T03:04:05+01:00
`))
	if err != nil {
		t.Fatal(err)
	}
	if n := b.rules(); n != 5 || len(b.patterns) != 1 {
		t.Errorf("%d rules, %d patterns", n, len(b.patterns))
	}
	if got, want := b.tokens["Alice.B-1_x"].expires, time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("expires %v", got)
	}
	if got, want := b.tokens["idle"].expires, time.Date(2027, 1, 2, 2, 4, 5, 0, time.UTC); !got.Equal(want) {
		t.Errorf("expires %v", got)
	}
	if got := b.grants([]secure.Identity{"spiffe://d/o/x"}); len(got) != 4 {
		t.Errorf("%d grants", len(got))
	}
}

// FuzzFile: every file is rejected with an error that names it, or satisfies the
// invariants: no token is an owner or a manager, managers have all namespaces, and
// every owner has a name.
func FuzzFile(f *testing.F) {
	seeds, err := filepath.Glob("testdata/files/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("%v, %d files", err, len(seeds))
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parse("f", text)
		if err != nil {
			if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), "f") {
				t.Errorf("%v", err)
			}
			return
		}
		if b.rules() == 0 {
			t.Error("no rules")
		}
		for id, rules := range b.exact {
			for _, r := range rules {
				name, isToken := tokenName(id)
				switch {
				case isToken && (r.role != roleLookup && r.role != roleOperator || b.tokens[name] == nil):
					t.Errorf("%s is %s", id, r.role)
				case r.role == roleManager && !r.allNamespaces, r.allNamespaces != (len(r.namespaces) == 0):
					t.Errorf("%s: %+v", id, r)
				case (r.role == roleOwner) != (len(r.names) > 0):
					t.Errorf("%s: names %q", id, r.names)
				}
			}
		}
	})
}
