package pki_test

import (
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
)

const domain = "example.org"

func setup() []pki.Party {
	return []pki.Party{
		{Role: pki.Manager, Name: "m1", Hosts: []string{"host1", "10.0.0.1"}},
		{Role: pki.Owner, Namespace: "sessions", Name: "cache-a"},
		{Role: pki.Owner, Namespace: "sessions", Name: "cache-b", Hosts: []string{"host2"}},
		{Role: pki.Lookup, Namespace: "sessions"},
		{Role: pki.Operator, Name: "alice"},
	}
}

func create(t *testing.T) (*pki.Directory, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pki")
	d, _, err := pki.Create(dir, domain, setup(), time.Now(), pki.LeafLifetime)
	if err != nil {
		t.Fatal(err)
	}
	return d, dir
}

func read(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	certs, err := pki.ReadCertificates(name)
	if err != nil {
		t.Fatal(err)
	}
	return certs[0]
}

// Package secure accepts all created certificates, with the right identities.
func TestCreate(t *testing.T) {
	_, dir := create(t)
	for path, want := range map[string][]secure.Identity{
		"manager/m1":             {"spiffe://example.org/manager/m1", "dns:host1", "dns:localhost"},
		"owner/sessions/cache-a": {"spiffe://example.org/owner/sessions/cache-a", "dns:cache-a"},
		"owner/sessions/cache-b": {"spiffe://example.org/owner/sessions/cache-b", "dns:host2"},
		"lookup/sessions":        {"spiffe://example.org/lookup/sessions"},
		"operator/alice":         {"spiffe://example.org/operator/alice"},
	} {
		at := filepath.Join(dir, path)
		k, err := secure.Open(secure.Config{Cert: at + "/tls.crt", Key: at + "/tls.key", Roots: at + "/ca.crt"})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		d := k.Describe()
		if diff := cmp.Diff(want, d.Identities); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		if problems := k.Check(); len(problems) > 0 {
			t.Errorf("%s: %s", path, problems)
		}
		if serves := strings.HasPrefix(path, "manager") || strings.HasPrefix(path, "owner"); !d.Client || d.Server != serves {
			t.Errorf("%s: for clients %t, for servers %t", path, d.Client, d.Server)
		}
		if left := time.Until(k.Expires()); left > 90*24*time.Hour || left < 89*24*time.Hour {
			t.Errorf("%s: valid for %v", path, left)
		}
		k.Close()
	}
	ca := read(t, filepath.Join(dir, "ca.crt"))
	if left := time.Until(ca.NotAfter); left < 3649*24*time.Hour {
		t.Errorf("the CA is valid for %v", left)
	}
}

// Keys and directories are accessible to their user only.
func TestModes(t *testing.T) {
	_, dir := create(t)
	keys := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o644)
		switch {
		case entry.IsDir():
			want = 0o700
		case strings.HasSuffix(path, ".key"):
			keys++
			want = 0o600
		case strings.HasSuffix(path, ".yaml"):
			want = 0o600
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil || keys != 6 {
		t.Error(keys, "keys", err)
	}
}

// Create overwrites nothing, and leaves no files after an error.
func TestCreateRefuses(t *testing.T) {
	_, dir := create(t)
	before := snapshot(t, filepath.Dir(dir))
	for name, make := range map[string]func() error{
		"again": func() error {
			_, _, err := pki.Create(dir, domain, setup(), time.Now(), pki.LeafLifetime)
			return err
		},
		"not empty": func() error {
			_, _, err := pki.Create(filepath.Join(dir, "manager"), domain, setup(), time.Now(), pki.LeafLifetime)
			return err
		},
		"a bad party": func() error {
			_, _, err := pki.Create(dir+"2", domain, append(setup(), pki.Party{Role: pki.Owner, Namespace: "sessions", Name: "a/b"}), time.Now(), pki.LeafLifetime)
			return err
		},
		"a party twice": func() error {
			_, _, err := pki.Create(dir+"2", domain, append(setup(), setup()[0]), time.Now(), pki.LeafLifetime)
			return err
		},
	} {
		if err := make(); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, snapshot(t, filepath.Dir(dir))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, bad := range []string{"", "Example.org", "a_b", "10.0.0.1", "a/b", "*.org", "{name}.org"} {
		if _, _, err := pki.Create(dir+"3", bad, nil, time.Now(), pki.LeafLifetime); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("domain %q: %v", bad, err)
		}
	}
}

// snapshot returns the content of all files below a directory.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestIssue(t *testing.T) {
	_, dir := create(t)
	d, err := pki.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(p pki.Party, out string) (pki.Issued, error) { return d.Issue(p, out, time.Now(), 24*time.Hour) }

	file := filepath.Join(dir, "owner", "sessions", "cache-b", "tls.crt")
	before := read(t, file)
	roots := filepath.Join(dir, "owner", "sessions", "cache-b", "ca.crt")
	if err := os.WriteFile(roots, []byte("two roots"), 0o600); err != nil {
		t.Fatal(err)
	}
	issued, err := issue(pki.Party{Role: pki.Owner, Namespace: "sessions", Name: "cache-b"}, "")
	after := read(t, file)
	if err != nil || !issued.Renewed || !slices.Equal(after.DNSNames, before.DNSNames) || after.SerialNumber.Cmp(before.SerialNumber) == 0 {
		t.Error("renewing:", issued, err, after.DNSNames)
	}
	if text, err := os.ReadFile(roots); err != nil || string(text) != "two roots" {
		t.Error("renewing changed the roots:", err)
	}
	if issued, err = issue(pki.Party{Role: pki.Owner, Namespace: "sessions", Name: "cache-c"}, filepath.Join(dir, "out")); err != nil || issued.Renewed {
		t.Error(issued, err)
	}
	for name, bad := range map[string]struct {
		party pki.Party
		out   string
	}{
		"somebody else's directory": {pki.Party{Role: pki.Operator, Name: "bob"}, filepath.Join(dir, "out")},
		"a way out":                 {pki.Party{Role: pki.Operator, Name: ".."}, ""},
		"a longer way out":          {pki.Party{Role: pki.Operator, Name: "../../x"}, ""},
		"a pattern":                 {pki.Party{Role: pki.Owner, Namespace: "sessions", Name: "{name}"}, ""},
		"no name":                   {pki.Party{Role: pki.Manager}, ""},
		"no namespace":              {pki.Party{Role: pki.Owner, Name: "a"}, ""},
		"no role":                   {pki.Party{Role: "king", Name: "a"}, ""},
		"a manager's namespace":     {pki.Party{Role: pki.Manager, Namespace: "sessions", Name: "a"}, ""},
		"a lookup's name":           {pki.Party{Role: pki.Lookup, Namespace: "sessions", Name: "a"}, ""},
		"an operator's host":        {pki.Party{Role: pki.Operator, Name: "a", Hosts: []string{"h"}}, ""},
		"a wildcard":                {pki.Party{Role: pki.Manager, Name: "a", Hosts: []string{"*.example.org"}}, ""},
	} {
		if _, err := issue(bad.party, bad.out); leasehold.KindOf(err) != leasehold.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.Issue(setup()[0], "", time.Now().Add(2*pki.AuthorityLifetime), time.Hour); err == nil {
		t.Error("an expired CA issues certificates")
	}
	if issued, err := d.Issue(setup()[0], "", time.Now(), 2*pki.AuthorityLifetime); err != nil || issued.NotAfter.After(d.Authority().NotAfter) {
		t.Error("a certificate outlives its CA:", issued.NotAfter, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	_, dir := create(t)
	if _, err := pki.Open(dir + "x"); err == nil || !strings.Contains(err.Error(), "pki init") {
		t.Error(err)
	}
	_, other := create(t)
	key, err := os.ReadFile(filepath.Join(other, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.Open(dir); err == nil || !strings.Contains(err.Error(), "does not belong to the first certificate") {
		t.Error(err)
	}
}

// Package secure accepts the revocation list.
func TestRevoke(t *testing.T) {
	d, dir := create(t)
	at := filepath.Join(dir, "manager", "m1")
	a, b := read(t, filepath.Join(dir, "owner", "sessions", "cache-a", "tls.crt")), read(t, filepath.Join(dir, "owner", "sessions", "cache-b", "tls.crt"))
	for _, cert := range []*x509.Certificate{a, b, a} {
		if _, err := d.Revoke([]*x509.Certificate{cert}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	k, err := secure.Open(secure.Config{Cert: at + "/tls.crt", Key: at + "/tls.key", Roots: at + "/ca.crt", Revoked: filepath.Join(dir, "crl.pem")})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if !k.Revoked(a) || !k.Revoked(b) || k.Revoked(read(t, at+"/tls.crt")) || len(k.Check()) > 0 {
		t.Error(k.Revoked(a), k.Revoked(b), k.Check())
	}
	other, _ := create(t)
	if _, err := other.Revoke([]*x509.Certificate{a}, time.Now()); err == nil {
		t.Error("a CA revokes another's certificate")
	}
	if _, err := d.Revoke([]*x509.Certificate{d.Authority()}, time.Now()); err == nil {
		t.Error("a CA revokes itself")
	}
}

// The policy permits exactly the roles of the certificates.
func TestPolicy(t *testing.T) {
	type rule struct {
		Identity   string
		Role       string
		Namespaces []string
	}
	var have struct{ Rules []rule }
	_, dir := create(t)
	text, err := os.ReadFile(filepath.Join(dir, "access.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &have); err != nil {
		t.Fatal(err)
	}
	want := []rule{
		{"spiffe://example.org/manager/m1", "manager", []string{"*"}},
		{"spiffe://example.org/owner/sessions/{name}", "owner", []string{"sessions"}},
		{"spiffe://example.org/lookup/sessions", "lookup", []string{"sessions"}},
		{"spiffe://example.org/operator/alice", "operator", []string{"*"}},
	}
	if diff := cmp.Diff(want, have.Rules); diff != "" {
		t.Error(diff)
	}
	for _, odd := range []leasehold.Namespace{"1.0", "null", "true", "0x1f"} {
		if err := yaml.Unmarshal([]byte("rules:\n"+pki.Rule(domain, pki.Party{Role: pki.Lookup, Namespace: odd})), &have); err != nil || have.Rules[0].Namespaces[0] != string(odd) {
			t.Errorf("namespace %s: %v %v", odd, have, err)
		}
	}
}

func TestNewToken(t *testing.T) {
	a, hashA := pki.NewToken()
	b, hashB := pki.NewToken()
	if a == b || hashA == hashB || len(hashA) != 64 || len(a) < 43 || strings.ContainsAny(a, " \n/+=") {
		t.Error("wrong format of token or hash")
	}
}

// A CA with a revocation list can be replaced by another one of the same domain, as docs/OPERATIONS.md
// describes; the list stays.
func TestReplacedAuthority(t *testing.T) {
	last, oldDir := create(t)
	_, newDir := create(t)
	if was, is := read(t, filepath.Join(oldDir, "ca.crt")).Subject.String(), read(t, filepath.Join(newDir, "ca.crt")).Subject.String(); was == is {
		t.Errorf("both have the name %s", is)
	}
	list, err := last.Revoke([]*x509.Certificate{read(t, filepath.Join(oldDir, "owner", "sessions", "cache-a", "tls.crt"))}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cfg := secure.Dir(filepath.Join(newDir, "manager", "m1"))
	cfg.Revoked = list
	k, err := secure.Open(cfg)
	if err != nil {
		t.Fatalf("with the old CA's list: %v", err)
	}
	k.Close()
}

// The identities of managers are known if all trusted CAs were made by Create.
func TestManagers(t *testing.T) {
	_, dir := create(t)
	ours, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := os.ReadFile(filepath.Join(dir, "manager", "m1", "tls.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text []byte
		want []secure.Identity
	}{
		"ours":             {ours, []secure.Identity{"spiffe://example.org/manager/{name}"}},
		"ours twice":       {slices.Concat(ours, ours), []secure.Identity{"spiffe://example.org/manager/{name}"}},
		"ours and another": {slices.Concat(ours, leaf), nil},
		"nothing":          {nil, nil},
	} {
		file := filepath.Join(t.TempDir(), "roots")
		if err := os.WriteFile(file, test.text, 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, pki.Managers(file)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
