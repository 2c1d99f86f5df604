package managerd

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/server/console"
)

// greeting is what a manager tells people once it listens: where, on what
// data, and what to try next. The addresses are the real ones, whatever the
// settings asked for; health is empty if HTTP is not served.
func (m *ManagerSettings) greeting(listening, health string) string {
	lines := []console.Entry{{"manager", console.Heading(listening)}}
	if m.Advertise != "" && m.Advertise != listening {
		lines = append(lines, console.Entry{"reached at", m.Advertise})
	}
	if health != "" {
		base := "http://" + health
		if m.Security.Tls() {
			base = "https://" + health
		}
		lines = append(lines, console.Entry{"dashboard", base + "/"}, console.Entry{"health", base + "/readyz"})
	}
	lines = append(lines, m.where())
	at := listening
	if m.Advertise != "" {
		at = m.Advertise
	}
	command := func(rest string) string {
		switch {
		case m.Security.Tls():
			rest += " --tls-dir DIR" // of an operator, which is not ours
		case at == cli.DefaultManager:
			return "  leasehold " + rest
		case !address.Loopback(at):
			rest += " --" + cli.InsecureFlag
		}
		return "  leasehold " + rest + " --managers " + at
	}
	next := []string{
		"", "To try next, in another terminal:", "",
		command("namespace create presence"),
		command("status"),
		command("events --follow"),
	}
	return console.Facts(lines) + strings.Join(next, "\n") + "\n"
}

// where says where the tables are.
func (m *ManagerSettings) where() console.Entry {
	switch {
	case m.Store == inMemory:
		return console.Entry{"tables", fmt.Sprintf("in memory only, with %s", console.Counted(len(m.Peers.Members)-1, "other manager"))}
	case m.Store == inEtcd:
		return console.Entry{"tables", fmt.Sprintf("in etcd at %s, under %s", strings.Join(m.Etcd.Endpoints, ", "), m.Etcd.Prefix)}
	case len(m.Members) > 1:
		return console.Entry{"tables", fmt.Sprintf("in %s, and with %s", m.DataDir, console.Counted(len(m.Members)-1, "other manager"))}
	case m.Join != "":
		return console.Entry{"tables", fmt.Sprintf("in %s, and with the group of %s", m.DataDir, m.Join)}
	}
	return console.Entry{"tables", "in " + m.DataDir}
}
