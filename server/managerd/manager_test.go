package managerd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// managerFrom returns the settings for arguments, on a trusted network.
func managerFrom(t *testing.T, args ...string) (*ManagerSettings, error) {
	t.Helper()
	m := &ManagerSettings{}
	cmd := &cobra.Command{}
	m.AddFlags(cmd)
	if err := cmd.ParseFlags(append([]string{"--insecure"}, args...)); err != nil {
		t.Fatal(err)
	}
	err := m.Validate()
	return m, err
}

func TestManagerSettingsAreDerived(t *testing.T) {
	host := hostname()
	const three = "--members=a=http://10.0.0.1:7402,b=b.example.com:7402,c=http://[::1]:7402"
	members := []groupMember{{"a", "http://10.0.0.1:7402"}, {"b", "http://b.example.com:7402"}, {"c", "http://[::1]:7402"}}
	type derived struct {
		Advertise, DataDir, Name, PeerListen, PeerURL string
		Members                                       []groupMember
	}
	for _, test := range []struct {
		name string
		args []string
		want derived
	}{
		{"alone", nil, derived{"127.0.0.1:7400", "leasehold.data", host, "", "", nil}},
		{"on any port", []string{"--listen=127.0.0.1:0"}, derived{"", "leasehold.data", host, "", "", nil}},
		{"reached elsewhere", []string{"--listen=:7400", "--advertise=m1:7400"}, derived{"m1:7400", "leasehold.data", host, "", "", nil}},
		{"an address in a group", []string{three, "--name=a"}, derived{"127.0.0.1:7400", "leasehold.data", "a", "10.0.0.1:7402", "http://10.0.0.1:7402", members}},
		{"a name in a group", []string{three, "--name=b"}, derived{"127.0.0.1:7400", "leasehold.data", "b", ":7402", "http://b.example.com:7402", members}},
		{"told where to listen", []string{three, "--name=c", "--peer-listen=[::]:1"}, derived{"127.0.0.1:7400", "leasehold.data", "c", "[::]:1", "http://[::1]:7402", members}},
		{"joining", strings.Fields("--listen=:7400 --advertise=m4:7400 --name=d --peer-listen=:7402 --join=m1:7400"), derived{"m4:7400", "leasehold.data", "d", ":7402", "http://m4:7402", nil}},
		{"to be joined", []string{"--name=a", "--peer-listen=:7402"}, derived{"127.0.0.1:7400", "leasehold.data", "a", ":7402", "http://127.0.0.1:7402", nil}},
		{"in front of etcd", []string{"--etcd=https://e1:2379,e2:2379"}, derived{"127.0.0.1:7400", "", "", "", "", nil}},
	} {
		m, err := managerFrom(t, append(test.args, "--insecure")...)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		got := derived{m.Advertise, m.DataDir, m.Name, m.PeerListen, m.PeerURL, m.Members}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

func TestContradictorySettingsAreRejected(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args, want string
	}{
		{"--listen=7400", `--listen: "7400": want host:port`},
		{"--listen=", `--listen: "": want host:port`},
		{"--listen=0.0.0.0:7400", "--listen 0.0.0.0:7400 is a wildcard address, and others cannot connect to it: set the address of this manager with --advertise"},
		{"--advertise=0.0.0.0:7400", "--advertise 0.0.0.0:7400 is a wildcard address, and others cannot connect to it: name one"},
		{"--advertise=:7400", "--advertise :7400 is a wildcard address"},
		{"--advertise=m1:0", "--advertise m1:0: want a fixed port, which others connect to"},
		{"--http=127.0.0.1:7400", "--http 127.0.0.1:7400 is the address of --listen, too: choose another port"},
		{"--ttl=1ms", "--ttl 1ms: want 100ms to 1h"},
		{"--drift=0.9", "--drift 0.9: want 1 to 10"},
		{"--drift=NaN", "--drift NaN: want 1 to 10"},
		{"--max-connections=0", "--max-connections 0: want 1 to 1048576"},
		{"--max-handshakes=-1", "--max-handshakes -1: want 1 to 1048576"},
		{"--log-format=xml", `--log-format "xml": want text or json`},
		{"--log-level=loud", `--log-level "loud": want debug, info, warn or error`},
		{"--data-dir=", "--data-dir: the data directory is missing"},
		{"--name=a=b", `--name: "a=b": a manager name must not contain a space, comma or equals sign`},
		{"--etcd=e:2379 --data-dir=x", "--data-dir is for managers with an embedded store, and with --etcd the tables are in that cluster: remove one of them"},
		{"--etcd=e:2379 --join=m:7400", "--join is for managers with an embedded store"},
		{"--etcd=e:2379 --members=a=m:1", "--members is for managers with an embedded store"},
		{"--etcd=e", `--etcd: "e": want host:port or a URL with a port`},
		{"--etcd-user=u", "--etcd-user is for an etcd cluster, and this manager keeps its tables on disk: name its endpoints with --etcd"},
		{"--etcd-prefix=/x/", "--etcd-prefix is for an etcd cluster"},
		{"--etcd=e:2379 --etcd-cert=x", "--etcd-cert and --etcd-key must be set together: one is missing"},
		{"--etcd=e:2379 --etcd-user=u", "--etcd-user and its password must be set together: one is missing"},
		{"--etcd=e:2379 --etcd-password=p", "a secret on the command line is visible to every user of this computer: replace it, then use --etcd-password-file with a file of mode 0600, or LEASEHOLD_ETCD_PASSWORD, instead of --etcd-password"},
		{"--etcd=https://u:p@e:2379", "--etcd: a URL contains a user or password, and URLs are logged: use --etcd-user and --etcd-password-file"},
		{"--members=a=http://u:p@m:1 --name=a", "--members: a URL contains a user or password"},
		{"--etcd=e:2379 --etcd-user=u --etcd-password-file=/nosuch", "--etcd-password-file: open /nosuch: no such file"},
		{"--etcd=e:2379 --etcd-user=u --etcd-password-file=" + password, "want one line with the secret"},
		{"--etcd=e:2379 --quota=1GiB", "--quota is for managers with an embedded store"},
		{"--quota=8GB", `--quota: "8GB": want a number of bytes such as 512MiB or 8GiB`},
		{"--quota=-1", `--quota: "-1": want a number of bytes`},
		{"--quota=9999999999999GiB", `want a number of bytes`},
		{"--quota=1MiB", "--quota 1MiB: want 16MiB to 64GiB"},
		{"--quota=65GiB", "--quota 65GiB: want 16MiB to 64GiB"},
		{"--members=a=m:1 --name=a --join=m:7400", "--members bootstraps a group and --join joins one: remove one of them"},
		{"--members=a=m:1 --name=b", `--members does not contain this manager, "b": set its name with --name`},
		{"--members=a=m:1,a=m:2 --name=a", "--members: a=m:2: duplicate name or URL"},
		{"--members=a=m:1,b=m:1 --name=a", "--members: b=m:1: duplicate name or URL"},
		{"--members=m:1 --name=a", `--members: "m:1": want name=url`},
		{"--members=a=ftp://m:1 --name=a", "want a URL of host and port"},
		{"--members=a=http://m:1/x --name=a", "want a URL of host and port"},
		{"--members=a=http://m --name=a", "want a URL of host and port"},
		{"--members=a=0.0.0.0:1 --name=a", "want a host and port that the other managers can connect to"},
		{"--members=" + strings.Repeat("a=m:1,", 9) + "a=m:1 --name=a", "--members: 10 members, want at most 9"},
		{"--join=m:7400", "--join requires --peer-listen, the address for the stores of the other managers"},
		{"--peer-listen=:0", "--peer-listen :0: want a fixed port, which the other managers connect to"},
		{"--etcd=e:2379 --peer-listen=:1", "--peer-listen is for managers that connect to each other"},
		{"--store=paper", `--store "paper": want disk, etcd, flease`},
		{"--store=etcd", "--store is etcd, which requires the endpoints in --etcd"},
		{"--store=disk --etcd=e:2379", "--etcd is for an etcd cluster, and --store is disk: remove one of them"},
		{"--peers=a:1,b:1,c:1", "--peers is for managers without disks, and this manager keeps its tables on disk: use --store flease"},
		{"--store=flease --data-dir=x", "--data-dir is for managers with an embedded store, and --store is flease: remove one of them"},
		{"--store=flease --etcd=e:2379", "--etcd is for an etcd cluster, and --store is flease: remove one of them"},
		{"--store=flease", "--peers has 0 addresses, want 3 to 9: all managers of the group, this one included"},
		{"--store=flease --peers=a:1,b:1", "--peers has 2 addresses"},
		{"--store=flease --peers=a:1,b:1,c", `--peers: "c": want host:port`},
		{"--store=flease --peers=a:1,b:1,c:0", "has no port that others can connect to"},
		{"--store=flease --peers=a:1,b:1,a:1", "--peers: a:1: duplicate address"},
		{"--store=flease --peers=a:1,b:1,c:1=b:1", "--peers: c:1=b:1: duplicate address"},
		{"--store=flease --peers=a:1,b:1,c:1", `--peers does not contain "127.0.0.1:7400", the address of this manager: set it with --advertise`},
		{"--store=flease --advertise=a:1 --peers=a:1,b:1,c:1 --epsilon=2s", "--epsilon 2s: want more than 0 and less than --ttl, which is 2s"},
		{"--store=flease --advertise=a:1 --peers=a:1,b:1,c:1 --longest-lease=1ms", "--longest-lease 1ms: want 100ms to 24h0m0s"},
		{"--store=flease --advertise=a:1 --peers=a:1,b:1,c:1 --peer-key-file=/nosuch", "--peer-key-file: open /nosuch: no such file"},
	} {
		_, err := managerFrom(t, strings.Fields(test.args)...)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "of them:") {
			t.Errorf("%s:\n got %v\nwant %s", test.args, err, test.want)
		}
	}
}

// TestManagerPeers: diskless managers listen for datagrams at the addresses that their peers use.
func TestManagerPeers(t *testing.T) {
	for args, want := range map[string]string{
		"--advertise=127.0.0.1:7 --peers=127.0.0.1:7,127.0.0.1:8,127.0.0.1:9":                       "127.0.0.1:7",
		"--advertise=127.0.0.1:7 --peers=127.0.0.1:7=127.0.0.1:17,127.0.0.1:8,127.0.0.1:9":          "127.0.0.1:17",
		"--listen=:7 --advertise=m1:7 --peers=m1:7,m2:7,m3:7":                                       ":7",
		"--advertise=127.0.0.1:7 --peers=127.0.0.1:7,127.0.0.1:8,127.0.0.1:9 --peer-listen=[::1]:5": "[::1]:5",
	} {
		m, err := managerFrom(t, append(strings.Fields(args), "--store=flease", "--insecure")...)
		if err != nil {
			t.Fatal(err)
		}
		if p := m.peers(); p.Listen != want || len(p.Members) != 3 || p.Longest != 12*time.Second || p.Epsilon != 500*time.Millisecond {
			t.Errorf("%s: %+v, want to listen at %s", args, p, want)
		}
	}
	if m, err := managerFrom(t); err != nil || m.peers() != nil {
		t.Errorf("a manager with a disk has peers, or fails: %v", err)
	}
}

func TestQuota(t *testing.T) {
	for text, want := range map[string]int64{"2GiB": 2 << 30, "512MiB": 512 << 20, "20000KiB": 20000 << 10, "16777216": 16 << 20} {
		m, err := managerFrom(t, "--quota="+text)
		if err != nil || m.Quota != want {
			t.Errorf("--quota=%s is %d (%v), want %d", text, m.Quota, err, want)
		}
	}
}

func TestPasswordFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("secret \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := managerFrom(t, "--etcd=127.0.0.1:2379", "--etcd-user=u", "--etcd-password-file="+path)
	if err != nil || m.Etcd.Password.Reveal() != "secret " {
		t.Errorf("got %q, %v", m.Etcd.Password, err)
	}
}

func TestGreeting(t *testing.T) {
	for _, test := range []struct {
		args              []string
		listening, health string
		want              string
	}{
		{nil, "127.0.0.1:7400", "127.0.0.1:7401", `manager    127.0.0.1:7400
dashboard  http://127.0.0.1:7401/
health     http://127.0.0.1:7401/readyz
tables     in leasehold.data

To try next, in another terminal:

  leasehold namespace create presence
  leasehold status
  leasehold events --follow
`},
		{[]string{"--listen=:9000", "--advertise=m1:9000", "--http=", "--etcd=e1:2379,e2:2379", "--insecure"}, "[::]:9000", "", `manager     [::]:9000
reached at  m1:9000
tables      in etcd at e1:2379, e2:2379, under /leasehold/

To try next, in another terminal:

  leasehold namespace create presence --insecure --managers m1:9000
  leasehold status --insecure --managers m1:9000
  leasehold events --follow --insecure --managers m1:9000
`},
	} {
		m, err := managerFrom(t, test.args...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, ansi.Strip(m.greeting(test.listening, test.health))); diff != "" {
			t.Error(diff)
		}
	}
}

func TestManagerLogger(t *testing.T) {
	m, err := managerFrom(t, "--log-format=json", "--log-level=warn")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := m.Log.Logger(&out)
	log.Info("hidden")
	log.Warn("shown")
	if got := out.String(); !strings.HasPrefix(got, `{"time":`) || strings.Contains(got, "hidden") {
		t.Errorf("got %s", got)
	}
}

// TestElectionTimeoutOfTheStore: the election timeout of the store leaves a leader time to renew,
// within its limits.
func TestElectionTimeoutOfTheStore(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 500 * time.Millisecond, time.Second: 500 * time.Millisecond, 1600 * time.Millisecond: 800 * time.Millisecond,
		2 * time.Second: time.Second, time.Hour: time.Second,
	} {
		if got := electionOf(ttl); got != want {
			t.Errorf("election timeout with --ttl %v: %v, want %v", ttl, got, want)
		}
	}
}
