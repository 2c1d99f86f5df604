package managerd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/server/settings"
)

// TestPasswordFromTheEnvironment: a password comes from the environment or a configuration file,
// and no output of the settings contains it.
func TestPasswordFromTheEnvironment(t *testing.T) {
	const canary = "hunter2-hunter2"
	var m ManagerSettings
	m.AddFlags(&cobra.Command{})
	err := settings.Fill(m.Flags, settings.Source{
		Environ: []string{"LEASEHOLD_ETCD_PASSWORD=" + canary, "LEASEHOLD_ETCD=127.0.0.1:2379", "LEASEHOLD_ETCD_USER=u"},
		Known:   []string{PasswordFlag, "etcd", "etcd-user"},
	})
	if err == nil {
		err = m.Validate()
	}
	if err != nil || m.Etcd.Password.Reveal() != canary {
		t.Fatalf("%v, %v", m.Etcd.Password.Reveal(), err)
	}
	described, err := settings.Describe(m.Flags, PasswordFlag)
	if err != nil || !strings.Contains(described, "etcd-password is not shown; it is from LEASEHOLD_ETCD_PASSWORD") {
		t.Errorf("%s, %v", described, err)
	}
	for _, text := range []string{described, fmt.Sprintf("%+v %#v", m, m.Etcd), m.Flags.Lookup(PasswordFlag).Value.String(), m.Flags.FlagUsages()} {
		if strings.Contains(text, canary) {
			t.Errorf("the output contains the password: %s", text)
		}
	}
	if strings.Contains(m.Flags.FlagUsages(), "--etcd-password ") {
		t.Error("the help shows a flag that does not exist")
	}
}

// TestErrorsDoNotContainSecrets: the error for a URL with a password does not contain the
// password.
func TestErrorsDoNotContainSecrets(t *testing.T) {
	const canary = "hunter2-hunter2"
	for _, args := range [][]string{
		{"--etcd=e:2379", "--etcd-user=u", "--etcd-password=" + canary},
		{"--etcd=e:2379", "--etcd-user=u", "--etcd-password", canary},
		{"--etcd-password=" + canary},
		{"--etcd=https://u:" + canary + "@e:2379"},
		{"--etcd=https://u:" + canary + "%@e"},
		{"--members=a=http://u:" + canary + "@m:1", "--name=a"},
	} {
		_, err := managerFrom(t, args...)
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
