package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/settings"
)

// FuzzManagerSettings: whatever a manager is told, one setting on a line, it says what is wrong
// with that, or has settings that make sense together.
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
		m := &managerSettings{}
		cmd := &cobra.Command{}
		m.addFlags(cmd)
		if cmd.ParseFlags(strings.Split(lines, "\n")) != nil || m.validate() != nil {
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
		if _, err := settings.Describe(m.flags, passwordFlag); err != nil && strings.ToValidUTF8(lines, "") == lines {
			t.Fatalf("%q: %v", lines, err)
		}
	})
}

// FuzzGatewaySettings: the same for a gateway.
func FuzzGatewaySettings(f *testing.F) {
	for _, lines := range []string{
		"--namespace=n\n--key=header:X-User", "--namespace=n\n--key=path:1,query:u\n--max-body=1KiB\n--replay=0", "--namespace=n\n--key=cookie:c\n--replay=9999GiB",
		"--namespace=n\n--key=header:X\n--health-listen=127.0.0.1:1\n--listen=127.0.0.1:1", "--namespace=N",
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		if strings.Contains(lines, "file") || strings.Contains(lines, "help") {
			return
		}
		g := &gatewaySettings{}
		cmd := &cobra.Command{}
		g.addFlags(cmd)
		if cmd.ParseFlags(strings.Split(lines, "\n")) != nil || g.validate() != nil {
			return
		}
		if g.replayBytes == 0 || g.replayBytes > maxGatewayReplay || g.maxBytes < 0 || g.key.String() == "" {
			t.Fatalf("%q: %+v", lines, g)
		}
	})
}

// FuzzBytes: a number of bytes is what it says, or refused.
func FuzzBytes(f *testing.F) {
	for _, text := range []string{"1048576", "512MiB", "8GiB", "9007199254740992KiB", "-1", "+1", "1 GiB", "GiB", "", "0x10", "1GB", "9223372036854775807"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseBytes(text)
		if err != nil {
			return
		}
		if digits := strings.TrimRight(text, "KMGiB"); n < 0 || strings.Trim(digits, "0123456789") != "" {
			t.Fatalf("%q is %d", text, n)
		}
	})
}

// FuzzSince: a time to look back to is not yet to come, and one that is written out is that time.
func FuzzSince(f *testing.F) {
	for _, text := range []string{"90m", "36h", "-1h", "0s", "2026-11-15", "2026-11-15 10:20", "10:20", "23:59:59", "0000-01-01", "9999-12-31", "292y", "2562047h", "0000-06-01T00:00:00Z", "24:00", ""} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := parseSince(text, now)
		switch {
		case err != nil || text == "":
		case at.After(now):
			t.Fatalf("%q is %v, which is yet to come", text, at)
		case strings.HasPrefix(text, "0000-") && at.Year() != 0:
			t.Fatalf("%q is %v", text, at)
		}
	})
}

// FuzzSlots: a file of slots is refused, or has a key and an owner for each.
func FuzzSlots(f *testing.F) {
	for _, text := range []string{"0000000000000000 a\n8000000000000000 b\n", "# none\n", "0 a", "0000000000000000\n", "\xff\xfe", "0000000000000000 a b  c\r\n", strings.Repeat("x", 70_000)} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "slots")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		slots, err := readSlots(path)
		if err == nil && (len(slots) == 0 || len(slots) > len(text)/16) {
			t.Fatalf("%d slots in %d bytes", len(slots), len(text))
		}
	})
}

// FuzzFleaseMembers: members have an id above 0 and an address, and are in the order of ids.
func FuzzFleaseMembers(f *testing.F) {
	for _, text := range []string{"1=127.0.0.1:7001,2=b:1", "0=a:1", "4294967296=a:1", "1=a", "+1=a:1", "1==a:1", ",", "2=a:1,1=b:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		members, err := parseMembers(strings.Split(text, ","))
		if err != nil {
			return
		}
		for i, m := range members {
			if m.ID == 0 || checkAddr(m.Addr) != nil || i > 0 && members[i-1].ID > m.ID {
				t.Fatalf("%q is read as %v", text, members)
			}
		}
	})
}

// FuzzKeyArgument: a key is what is said in hexadecimal, or the hash of a name.
func FuzzKeyArgument(f *testing.F) {
	for _, text := range []string{"alice", "0xff", "0X", "0x00000000000000001", "", "0xzz"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, hex bool) {
		k := addKeyFlag(&cobra.Command{})
		k.hex = hex
		got, err := k.parse(text)
		switch {
		case err != nil:
		case got.name != "" && got.key != leasehold.KeyOf(text):
			t.Fatalf("%q is taken for a name with key %v", text, got.key)
		case hex && !strings.HasSuffix(got.key.String(), strings.TrimPrefix(strings.ToLower(text), "0x")):
			t.Fatalf("%q is taken for the key %v", text, got.key)
		}
	})
}
