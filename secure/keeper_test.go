package secure_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/secure"
)

// TestOpenRejectsInvalidFiles with an error that has the file and the reason.
func TestOpenRejectsInvalidFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newRoot(t, "ours")
		good := ca.issue(t, uris(cacheAID))
		other := ca.issue(t, uris(cacheAID))
		for _, test := range []struct {
			name   string
			change func(*place)
			want   string
		}{
			{"no roots named", func(p *place) { p.conf.Roots = "" }, "Roots is missing"},
			{"a certificate without a key", func(p *place) { p.conf.Key = "" }, "want both files, or neither"},
			{"too fast", func(p *place) { p.conf.Poll = time.Millisecond }, "Poll is 1ms, want 100ms to 1h0m0s"},
			{"an invalid server", func(p *place) { p.conf.Servers = []secure.Identity{"m1"} }, "want a URI such as"},
			{"no such file", func(p *place) { p.conf.Cert = p.path("none") }, "no such file"},
			{"a directory", func(p *place) { p.conf.Roots = p.dir }, "it is not a regular file"},
			{"another key", func(p *place) { p.write("tls.key", other.keyText) }, "private key does not match public key"},
			{"a world-readable key", func(p *place) { chmod(t, p.path("tls.key"), 0o644) }, "its mode is 0644: only its owner"},
			{"a key that the group may write", func(p *place) { chmod(t, p.path("tls.key"), 0o660) }, "its mode is 0660"},
			{"a key in the place of the certificate", func(p *place) { p.write("tls.crt", good.keyText) }, `it has a PEM block "PRIVATE KEY", want only "CERTIFICATE"`},
			{"an empty file", func(p *place) { p.write("ca.crt", nil) }, `it has no PEM block "CERTIFICATE"`},
			{"invalid text", func(p *place) { p.write("ca.crt", []byte("rubbish")) }, `it has no PEM block "CERTIFICATE"`},
			{"DER", func(p *place) { p.write("ca.crt", ca.cert.Raw) }, "it looks like DER"},
			{"half a file", func(p *place) { p.write("ca.crt", append(ca.text(), ca.text()[:300]...)) }, "of 2 PEM blocks, only 1 are complete"},
			{"PEM with invalid contents", func(p *place) { p.write("ca.crt", pemText("CERTIFICATE", []byte("rubbish"))) }, "certificate 1: x509"},
			{"a root that is not a CA", func(p *place) { p.write("ca.crt", good.certText) }, "is not a CA's"},
			{"a CA's certificate", func(p *place) { p.write("tls.crt", ca.text()); p.write("tls.key", keyOf(t, ca)) }, "it is the certificate of a CA"},
			{"expired", func(p *place) { p.become(ca.issue(t, uris(cacheAID), valid(-time.Hour, -time.Minute))) }, "it expired on"},
			{"not yet valid", func(p *place) { p.become(ca.issue(t, uris(cacheAID), valid(time.Minute, time.Hour))) }, "it is not valid before"},
			{"an invalid revocation list", func(p *place) { p.revoke([]byte("rubbish")) }, "it is not a certificate revocation list"},
			{"no revocation list", func(p *place) { p.conf.Revoked = p.path("crl.pem") }, "no such file"},
			{"too long", func(p *place) { p.write("ca.crt", make([]byte, 17<<20)) }, "it has more than 16 MiB"},
		} {
			p := newPlace(t, good, ca)
			test.change(p)
			k, err := secure.Open(p.conf)
			if leasehold.KindOf(err) != leasehold.ErrInvalid || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "BEGIN") {
				t.Errorf("%s: the error has the contents of a file: %v", test.name, err)
			}
			if k != nil {
				k.Close()
			}
		}
	})
}

func TestOpenAccepts(t *testing.T) {
	ca := newRoot(t, "ours")
	good := ca.issue(t, uris(cacheAID))
	for _, mode := range []os.FileMode{0o600, 0o400, 0o640, 0o440} {
		p := newPlace(t, good, ca)
		chmod(t, p.path("tls.key"), mode)
		p.open()
	}
	p := newPlace(t, good, ca)
	p.write("ca.crt", bytes.Join([][]byte{[]byte("# ours\n"), ca.text(), []byte("\n# the next\n"), newRoot(t, "next").text()}, nil))
	p.open()
}

// TestReload replaces files in all common ways.
func TestReload(t *testing.T) {
	next := func(ca *issuer) leaf { return ca.issue(t, uris("spiffe://example.org/owner/sessions/next")) }
	for _, test := range []struct {
		name    string
		prepare func(*place)
		replace func(*place, leaf)
	}{
		{"renamed", func(*place) {}, func(p *place, l leaf) { p.become(l) }},
		{"written over", func(*place) {}, func(p *place, l leaf) {
			overwrite(p.t, p.path("tls.crt"), l.certText)
			overwrite(p.t, p.path("tls.key"), l.keyText)
		}},
		{"written over, with the time of the old ones", func(*place) {}, func(p *place, l leaf) {
			for name, text := range map[string][]byte{"tls.crt": l.certText, "tls.key": l.keyText} {
				info, err := os.Stat(p.path(name))
				if err != nil {
					p.t.Fatal(err)
				}
				overwrite(p.t, p.path(name), text)
				if err := os.Chtimes(p.path(name), info.ModTime(), info.ModTime()); err != nil {
					p.t.Fatal(err)
				}
			}
		}},
		{"as Kubernetes does", kubernetes, func(p *place, l leaf) {
			generation(p, "..2", l.certText, l.keyText)
			relink(p, "..2")
		}},
		{"key first, certificate later", func(*place) {}, func(p *place, l leaf) {
			p.write("tls.key", l.keyText)
			time.Sleep(3 * time.Second) // virtual
			p.write("tls.crt", l.certText)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newRoot(t, "ours")
				p := newPlace(t, ca.issue(t, uris(cacheAID)), ca)
				test.prepare(p)
				k := p.open()
				changed := k.Changed()
				time.Sleep(10 * time.Second)
				select {
				case <-changed:
					t.Fatal("unchanged files were applied")
				default:
				}
				test.replace(p, next(ca))
				before := time.Now()
				<-changed
				if took := time.Since(before); took > 2*p.conf.Poll {
					t.Errorf("it took %v", took)
				}
				want(t, k.Describe().Identities, "spiffe://example.org/owner/sessions/next")
				if len(p.log.Lines("certificates loaded")) != 1 || len(k.Check()) != 0 {
					t.Error(p.log, k.Check())
				}
			})
		})
	}
}

// TestReloadWaitsForUnchangedFiles: a partly written bundle can be valid.
func TestReloadWaitsForUnchangedFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		oldCA, newCA := newRoot(t, "old"), newRoot(t, "new")
		p := newPlace(t, oldCA.issue(t, uris(cacheAID)), oldCA)
		k := p.open()
		changed := k.Changed()
		time.Sleep(p.conf.Poll - time.Millisecond)
		p.trust(newCA) // what a poll sees that comes between two writes
		time.Sleep(2 * time.Millisecond)
		p.trust(newCA, oldCA)
		<-changed
		if len(p.log.Lines("roots=2")) != 1 || len(p.log.Lines("certificates loaded")) != 1 {
			t.Error(p.log)
		}
	})
}

// TestInvalidFilesAreNotApplied, and are logged once.
func TestInvalidFilesAreNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newRoot(t, "ours")
		p := newPlace(t, ca.issue(t, uris(cacheAID)), ca)
		p.conf.Poll = 10 * time.Second
		k := p.open()
		late := ca.issue(t, uris(m1ID), valid(time.Hour, 24*time.Hour))
		for name, damage := range map[string]func(){
			"another key":   func() { p.write("tls.key", late.keyText) },
			"rubbish":       func() { p.write("ca.crt", []byte("rubbish")) },
			"gone":          func() { remove(t, p.path("tls.crt")) },
			"not yet valid": func() { p.become(late) },
		} {
			damage()
			if err := k.Reload(); leasehold.KindOf(err) != leasehold.ErrInvalid {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Minute)
			want(t, k.Describe().Identities, cacheAID)
			if n := len(p.log.Lines("certificate files rejected")); n != 1 {
				t.Errorf("%s: logged %d times: %s", name, n, p.log)
			}
			if problems := k.Check(); len(problems) != 1 || !strings.Contains(problems[0], "certificate files rejected") {
				t.Errorf("%s: %q", name, problems)
			}
			p.log.Clear()
			p.become(ca.issue(t, uris(cacheAID)))
			p.trust(ca)
			if err := k.Reload(); err != nil {
				t.Fatal(err)
			}
			p.log.Clear()
		}
		// A certificate that is not valid yet is applied when it becomes valid.
		late = ca.issue(t, uris(m1ID), valid(time.Hour, 24*time.Hour))
		p.become(late)
		time.Sleep(59 * time.Minute)
		want(t, k.Describe().Identities, cacheAID)
		<-k.Changed()
		want(t, k.Describe().Identities, m1ID)
	})
}

func TestProblems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := newRoot(t, "ours")
		p := newPlace(t, ca.issue(t, uris(cacheAID), valid(0, 100*time.Hour)), ca)
		p.conf.Poll = time.Minute
		k := p.open()
		if !k.Expires().Equal(time.Now().Add(100 * time.Hour).Truncate(time.Second)) {
			t.Error("expires", k.Expires())
		}
		time.Sleep(79 * time.Hour)
		if len(k.Check()) != 0 {
			t.Error(k.Check())
		}
		time.Sleep(2 * time.Hour)
		if n := len(p.log.Lines("expires on 2000-01-05 04:00:00 UTC: renew it")); n != 1 || len(k.Check()) != 1 {
			t.Error(n, k.Check(), p.log)
		}
		time.Sleep(20 * time.Hour)
		if n := len(p.log.Lines("new connections fail; renew it")); n != 1 {
			t.Error(n, p.log)
		}
		p.become(newRoot(t, "other").issue(t))
		if err := k.Reload(); err != nil {
			t.Fatal(err)
		}
		all := strings.Join(k.Check(), "\n")
		if !strings.Contains(all, "leads to none of the roots") || !strings.Contains(all, "has no identity") {
			t.Error(all)
		}
	})
}

func chmod(t testing.TB, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t testing.TB, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// kubernetes makes the directory look like a mounted secret: the files are links into
// ..data, which is a link to a directory.
func kubernetes(p *place) {
	cert, err := os.ReadFile(p.path("tls.crt"))
	if err != nil {
		p.t.Fatal(err)
	}
	key, err := os.ReadFile(p.path("tls.key"))
	if err != nil {
		p.t.Fatal(err)
	}
	generation(p, "..1", cert, key)
	relink(p, "..1")
	for _, name := range []string{"tls.crt", "tls.key"} {
		remove(p.t, p.path(name))
		if err := os.Symlink(filepath.Join("..data", name), p.path(name)); err != nil {
			p.t.Fatal(err)
		}
	}
}

func generation(p *place, dir string, cert, key []byte) {
	if err := os.Mkdir(p.path(dir), 0o700); err != nil {
		p.t.Fatal(err)
	}
	overwrite(p.t, p.path(dir+"/tls.crt"), cert)
	overwrite(p.t, p.path(dir+"/tls.key"), key)
}

func relink(p *place, dir string) {
	if err := os.Symlink(dir, p.path("..data_tmp")); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(p.path("..data_tmp"), p.path("..data")); err != nil {
		p.t.Fatal(err)
	}
}
