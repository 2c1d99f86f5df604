package etcd_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/pki"
	"github.com/leasehold-dev/leasehold/secure"
	"github.com/leasehold-dev/leasehold/server/store/etcd"
)

// kin are managers and other parties with certificates of one CA.
type kin struct {
	t       *testing.T
	dir     string
	keepers map[string]*secure.Keeper

	mu     sync.Mutex
	banned []secure.Identity
}

func newKin(t *testing.T, managers ...string) *kin {
	t.Helper()
	k := &kin{t: t, dir: filepath.Join(t.TempDir(), "pki"), keepers: make(map[string]*secure.Keeper)}
	parties := []pki.Party{{Role: pki.Owner, Namespace: "n", Name: "owner", Hosts: []string{"127.0.0.1"}}}
	for _, name := range managers {
		parties = append(parties, pki.Party{Role: pki.Manager, Name: name, Hosts: []string{"127.0.0.1"}})
	}
	_, issued, err := pki.Create(k.dir, "example.org", parties, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range issued {
		keeper, err := secure.Open(files(i.Dir))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(keeper.Close)
		k.keepers[i.Party.Name] = keeper
	}
	return k
}

func files(dir string) secure.Config {
	in := func(name string) string { return filepath.Join(dir, name) }
	return secure.Config{Cert: in("tls.crt"), Key: in("tls.key"), Roots: in("ca.crt")}
}

// peers is the TLS configuration of a manager.
func (k *kin) peers(name string) etcd.PeerTLS {
	f := files(filepath.Join(k.dir, "manager", name))
	server := k.keepers[name].ServerTLS(secure.Required)
	server.NextProtos = []string{"http/1.1"}
	return etcd.PeerTLS{CertFile: f.Cert, KeyFile: f.Key, CAFile: f.Roots, Server: server, Allow: k.allow}
}

func (k *kin) allow(state *tls.ConnectionState) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range secure.Identities(state.PeerCertificates[0]) {
		if _, ok := id.Match("spiffe://example.org/manager/{name}"); ok && !slices.Contains(k.banned, id) {
			return nil
		}
	}
	return errors.New("it is no manager")
}

// get requests a member's version with another identity.
func (k *kin) get(as, url string) (status int, err error) {
	transport := &http.Transport{DialTLSContext: k.keepers[as].DialTLS, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, url+"/version", nil)
	if err != nil {
		return 0, err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// TestPeers: members accept managers, and reject other certificates of the same CA, and clients
// without one. When a manager loses its permission, the others continue.
func TestPeers(t *testing.T) {
	names := []string{"a", "b", "c"}
	k := newKin(t, names...)
	group := formGroupOf(t, k.peers, names...)
	url := group["a"].Config().PeerURL
	if status, err := k.get("b", url); status != http.StatusOK {
		t.Errorf("response to a manager: %d (%v)", status, err)
	}
	if status, err := k.get("owner", url); status != http.StatusForbidden {
		t.Errorf("response to an owner: %d (%v)", status, err)
	}
	stranger := newKin(t, "a")
	k.keepers["stranger"] = stranger.keepers["a"]
	if status, err := k.get("stranger", url); err == nil {
		t.Errorf("response to a certificate of another CA: %d", status)
	}
	if status, err := k.get("b", strings.Replace(url, "https", "http", 1)); status == http.StatusOK {
		t.Errorf("response to plaintext: %d (%v)", status, err)
	}

	takeOver(t, group["a"], "before")
	k.mu.Lock()
	k.banned = append(k.banned, "spiffe://example.org/manager/c")
	k.mu.Unlock()
	if status, err := k.get("c", url); status != http.StatusForbidden {
		t.Errorf("response to a revoked manager: %d (%v)", status, err)
	}
	if r, err := group["b"].Record(t.Context(), true); err != nil || r.Leader != "before" {
		t.Errorf("record at another manager: %+v (%v)", r, err)
	}
}
