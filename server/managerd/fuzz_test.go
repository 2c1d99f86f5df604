package managerd

import (
	"net/url"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/settings"
)

// FuzzManagerSettings: any flags, one on a line, are rejected or give consistent settings.
func FuzzManagerSettings(f *testing.F) {
	for _, lines := range []string{
		"--listen=127.0.0.1:7400", "--members=a=http://10.0.0.1:7402,b=b:7402,c=https://[::1]:7402\n--name=a",
		"--members=a=http://a:1?x=y\n--name=a", "--members=a=//:1\n--name=a", "--members=a=http://[::1]:1/\n--name=a\n--peer-listen=localhost:1",
		"--etcd=https://e:2379,e:1\n--etcd-prefix=x", "--etcd=http://e:2379/path", "--store=flease\n--peers=a:1,b:1,c:1=d:2\n--advertise=a:1",
		"--quota=64GiB", "--quota=+1GiB", "--ttl=1h\n--drift=10", "--http=\n--advertise=x:1\n--listen=:1", "--join=m:7400\n--peer-listen=:7402",
		"--dashboard-hosts=a,b", "--debug-listen=0.0.0.0:1", "--listen=[::]:0", "--name=\x1b[31m",
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		if strings.Contains(lines, "file") || strings.Contains(lines, "help") {
			return // it names a file to read
		}
		m := &ManagerSettings{}
		cmd := &cobra.Command{}
		m.AddFlags(cmd)
		if cmd.ParseFlags(strings.Split(lines, "\n")) != nil || m.Validate() != nil {
			return
		}
		if m.PeerListen != "" && m.PeerURL != "" {
			if u, err := url.Parse(m.listenPeerURL()); err != nil || u.Port() == "" {
				t.Fatalf("%q: it listens for peers on %q", lines, m.listenPeerURL())
			}
		}
		for _, member := range m.Members {
			u, err := url.Parse(member.PeerURL)
			if err != nil || u.Scheme+"://"+u.Host != member.PeerURL {
				t.Fatalf("%q: the URL of %s is %q", lines, member.Name, member.PeerURL)
			}
		}
		for _, endpoint := range m.Etcd.Endpoints {
			if strings.Contains(endpoint, "@") {
				t.Fatalf("%q: a password may be in %q", lines, endpoint)
			}
		}
		if _, err := settings.Describe(m.Flags, PasswordFlag); err != nil && strings.ToValidUTF8(lines, "") == lines {
			t.Fatalf("%q: %v", lines, err)
		}
	})
}
