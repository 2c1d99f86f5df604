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

// managerFrom returns the settings that arguments of manager amount to, in a network that
// can be trusted.
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

func TestManagerSettingsThatContradict(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args, want string
	}{
		{"--listen=7400", `--listen: "7400": want host:port`},
		{"--listen=", `--listen: "": want host:port`},
		{"--listen=0.0.0.0:7400", "--listen 0.0.0.0:7400 means every address of this computer, and others cannot connect to that: say with --advertise how they reach it"},
		{"--advertise=0.0.0.0:7400", "--advertise 0.0.0.0:7400: others cannot connect to every address of this computer; name one"},
		{"--advertise=:7400", "--advertise :7400: others cannot connect to every address"},
		{"--advertise=m1:0", "--advertise m1:0: others need to know the port"},
		{"--http=127.0.0.1:7400", "--http 127.0.0.1:7400: that is where it listens already"},
		{"--ttl=1ms", "--ttl 1ms: want 100ms to 1h"},
		{"--drift=0.9", "--drift 0.9: want 1 to 10"},
		{"--drift=NaN", "--drift NaN: want 1 to 10"},
		{"--max-connections=0", "--max-connections 0: want 1 to 1048576"},
		{"--max-handshakes=-1", "--max-handshakes -1: want 1 to 1048576"},
		{"--log-format=xml", `--log-format "xml": want text or json`},
		{"--log-level=loud", `--log-level "loud": want debug, info, warn or error`},
		{"--data-dir=", "--data-dir: the tables need a directory"},
		{"--name=a=b", `--name: "a=b": the name of a manager has no space, comma or equals sign`},
		{"--etcd=e:2379 --data-dir=x", "--data-dir is for tables that managers keep themselves, and with --etcd they are in that cluster: leave out one of the two"},
		{"--etcd=e:2379 --join=m:7400", "--join is for tables that managers keep themselves"},
		{"--etcd=e:2379 --members=a=m:1", "--members is for tables that managers keep themselves"},
		{"--etcd=e", `--etcd: "e": want host:port or a URL with a port`},
		{"--etcd-user=u", "--etcd-user says how to use an etcd cluster, and these keep their tables on disk: say with --etcd where that is"},
		{"--etcd-prefix=/x/", "--etcd-prefix says how to use an etcd cluster"},
		{"--etcd=e:2379 --etcd-cert=x", "--etcd-cert and --etcd-key go together: one is missing"},
		{"--etcd=e:2379 --etcd-user=u", "--etcd-user and its password go together: one is missing"},
		{"--etcd=e:2379 --etcd-password=p", "there is no flag --etcd-password, because everybody on this computer can read a command line: put it into a file of mode 0600 and name that with --etcd-password-file, or into LEASEHOLD_ETCD_PASSWORD"},
		{"--etcd=https://u:p@e:2379", "--etcd: there is a user or a password in a URL, which is shown and logged: say --etcd-user and --etcd-password-file"},
		{"--members=a=http://u:p@m:1 --name=a", "--members: there is a user or a password in a URL"},
		{"--etcd=e:2379 --etcd-user=u --etcd-password-file=/nosuch", "--etcd-password-file: open /nosuch: no such file"},
		{"--etcd=e:2379 --etcd-user=u --etcd-password-file=" + password, "want one line with the secret"},
		{"--etcd=e:2379 --quota=1GiB", "--quota is for tables that managers keep themselves"},
		{"--quota=8GB", `--quota: "8GB": want a number of bytes such as 512MiB or 8GiB`},
		{"--quota=-1", `--quota: "-1": want a number of bytes`},
		{"--quota=9999999999999GiB", `want a number of bytes`},
		{"--quota=1MiB", "--quota 1MiB: want 16MiB to 64GiB"},
		{"--quota=65GiB", "--quota 65GiB: want 16MiB to 64GiB"},
		{"--members=a=m:1 --name=a --join=m:7400", "--members founds a group and --join joins one: leave out one of the two"},
		{"--members=a=m:1 --name=b", `--members: "b", the name of this manager, is not among them: say with --name which one it is`},
		{"--members=a=m:1,a=m:2 --name=a", "--members: a=m:2: this name or URL is there twice"},
		{"--members=a=m:1,b=m:1 --name=a", "--members: b=m:1: this name or URL is there twice"},
		{"--members=m:1 --name=a", `--members: "m:1": want name=url`},
		{"--members=a=ftp://m:1 --name=a", "want a URL of host and port"},
		{"--members=a=http://m:1/x --name=a", "want a URL of host and port"},
		{"--members=a=http://m --name=a", "want a URL of host and port"},
		{"--members=a=0.0.0.0:1 --name=a", "the others cannot connect to that"},
		{"--members=" + strings.Repeat("a=m:1,", 9) + "a=m:1 --name=a", "--members: 10 members, want at most 9"},
		{"--join=m:7400", "--join: say with --peer-listen where the other managers' stores reach this one's"},
		{"--peer-listen=:0", "--peer-listen :0: the others need to know the port"},
		{"--etcd=e:2379 --peer-listen=:1", "--peer-listen is for managers that speak to each other"},
		{"--store=paper", `--store "paper": want disk, etcd, flease`},
		{"--store=etcd", "--store is etcd: say with --etcd where that is"},
		{"--store=disk --etcd=e:2379", "--etcd says how to use an etcd cluster, and --store is disk: leave out one of the two"},
		{"--peers=a:1,b:1,c:1", "--peers is for managers that keep nothing on disk, and these keep their tables on disk: say with --store flease that they do not"},
		{"--store=flease --data-dir=x", "--data-dir is for tables that managers keep themselves, and --store is flease: leave out one of the two"},
		{"--store=flease --etcd=e:2379", "--etcd says how to use an etcd cluster, and --store is flease: leave out one of the two"},
		{"--store=flease", "--peers: want the addresses of 3 to 9 managers with commas between"},
		{"--store=flease --peers=a:1,b:1", "there are 2"},
		{"--store=flease --peers=a:1,b:1,c", `--peers: "c": want host:port`},
		{"--store=flease --peers=a:1,b:1,c:0", "has no port that others can connect to"},
		{"--store=flease --peers=a:1,b:1,a:1", "--peers: a:1: this address is there twice"},
		{"--store=flease --peers=a:1,b:1,c:1=b:1", "--peers: c:1=b:1: this address is there twice"},
		{"--store=flease --peers=a:1,b:1,c:1", `--peers: "127.0.0.1:7400", which is where the others reach this manager, is not among them: say with --advertise which one it is`},
		{"--store=flease --advertise=a:1 --peers=a:1,b:1,c:1 --epsilon=2s", "--epsilon 2s: want more than 0 and less than --ttl, which is 2s"},
		{"--store=flease --advertise=a:1 --peers=a:1,b:1,c:1 --longest-lease=1ms", "--longest-lease 1ms: want 100ms to 24h0m0s"},
		{"--store=flease --advertise=a:1 --peers=a:1,b:1,c:1 --peer-key-file=/nosuch", "--peer-key-file: open /nosuch: no such file"},
	} {
		_, err := managerFrom(t, strings.Fields(test.args)...)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "of the two:") {
			t.Errorf("%s:\n got %v\nwant %s", test.args, err, test.want)
		}
	}
}

// Managers without a disk listen for datagrams where the others send them.
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

// TestElectionsOfTheStore: they leave a leader time to renew, if they can.
func TestElectionsOfTheStore(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 500 * time.Millisecond, time.Second: 500 * time.Millisecond, 1600 * time.Millisecond: 800 * time.Millisecond,
		2 * time.Second: time.Second, time.Hour: time.Second,
	} {
		if got := electionOf(ttl); got != want {
			t.Errorf("with --ttl %v they elect after %v, want %v", ttl, got, want)
		}
	}
}
