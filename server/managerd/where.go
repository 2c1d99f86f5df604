package managerd

import (
	"fmt"
	"slices"
	"strings"
)

// Where tables can be.
const (
	onDisk   = "disk"
	inEtcd   = "etcd"
	inMemory = "flease"
)

// storeNames are the values of --store. It is not changed.
var storeNames = []string{onDisk, inEtcd, inMemory}

// validateStore finds out where the tables are, and refuses settings of what is not
// used: whoever made them expects something of them.
func (m *ManagerSettings) validateStore() error {
	if m.Store == "" {
		m.Store = onDisk
		if len(m.Etcd.Endpoints) > 0 {
			m.Store = inEtcd
		}
	}
	if !slices.Contains(storeNames, m.Store) {
		return fmt.Errorf("%s %q: want %s", m.origin("store"), m.Store, strings.Join(storeNames, ", "))
	}
	for _, group := range []struct {
		store, purpose, instead string
		flags                   []string
	}{
		{
			onDisk, "is for tables that managers keep themselves", "",
			[]string{"data-dir", "name", "members", "join", "quota"},
		},
		{
			inEtcd, "says how to use an etcd cluster", ": say with --etcd where that is",
			[]string{"etcd-prefix", "etcd-ca", "etcd-cert", "etcd-key", "etcd-user", PasswordFlag, "etcd-password-file", "etcd"},
		},
		{
			inMemory, "is for managers that keep nothing on disk", ": say with --store flease that they do not",
			[]string{"peers", "peer-key-file", "epsilon", "longest-lease"},
		},
	} {
		if group.store == m.Store {
			continue
		}
		for _, flag := range group.flags {
			if m.given(flag) {
				return fmt.Errorf("%s %s, and %s", m.origin(flag), group.purpose, m.tables(group.instead))
			}
		}
	}
	if m.Store == inEtcd && m.given("peer-listen") {
		return fmt.Errorf("%s is for managers that speak to each other, and %s", m.origin("peer-listen"), m.tables(""))
	}
	m.forget()
	return nil
}

// tables says where the tables are, and why; if nobody has said so, what to say instead.
func (m *ManagerSettings) tables(instead string) string {
	switch {
	case m.Store == inEtcd && m.given("etcd"):
		return "with " + m.origin("etcd") + " they are in that cluster: leave out one of the two"
	case m.given("store"):
		return m.origin("store") + " is " + m.Store + ": leave out one of the two"
	}
	return "these keep their tables on disk" + instead
}

// forget empties what is not used, so that nobody reads it.
func (m *ManagerSettings) forget() {
	if m.Store != onDisk {
		m.DataDir, m.quota = "", ""
	}
	if m.Store != inEtcd {
		m.Etcd.Prefix = ""
	}
	if m.Store != inMemory {
		m.Peers = peerSettings{}
	}
}
