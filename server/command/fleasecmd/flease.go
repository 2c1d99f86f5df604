package fleasecmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/leasehold-dev/leasehold/server/cli"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/flease"
	"github.com/leasehold-dev/leasehold/internal/runtime/address"
	"github.com/leasehold-dev/leasehold/secret"
)

const fleaseHelp = `Leases that a group of processes agree upon among themselves, with no manager, no
lock server and no disk. A resource is a name of your choosing; at most one member
holds it at a time, and when that one dies another can have it.

"leasehold flease run" runs a member. Programs in Go are members themselves, with
package flease; these commands serve scripts, and those who want to see it work.`

const fleaseExample = `  leasehold flease run --id 1 --members 1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003
  leasehold flease acquire nightly --member 127.0.0.1:7001 -- ./report.sh
  leasehold flease status --member 127.0.0.1:7001`

// New returns the command.
func New() *cobra.Command {
	cmd := cli.Group("flease", "Agree on leases without a manager", fleaseHelp, newRunCommand(), newAcquireCommand(), newStatusCommand())
	cmd.Example = fleaseExample
	return cmd
}

// defaultMember is where the commands look for a member.
const defaultMember = "127.0.0.1:7001"

// parseMembers reads 1=host:port,2=host:port.
func parseMembers(list []string) ([]flease.Member, error) {
	var members []flease.Member
	for _, item := range list {
		number, addr, found := strings.Cut(strings.TrimSpace(item), "=")
		id, err := strconv.ParseUint(number, 10, 32)
		if !found || err != nil || id == 0 {
			return nil, fmt.Errorf("--members %q: want an id from 1 on and an address, such as 1=%s", item, defaultMember)
		}
		if err := cli.CheckAddr(addr); err != nil {
			return nil, fmt.Errorf("--members: %w", err)
		}
		members = append(members, flease.Member{ID: flease.ID(id), Addr: addr})
	}
	slices.SortFunc(members, func(a, b flease.Member) int { return cmp.Compare(a.ID, b.ID) })
	return members, nil
}

// memberOf returns the address of a member, and an error if it is none.
func memberOf(members []flease.Member, id uint32) (string, error) {
	for _, m := range members {
		if m.ID == flease.ID(id) {
			return m.Addr, nil
		}
	}
	return "", fmt.Errorf("--id %d: there is no such member in --members, which has %d", id, len(members))
}

// readKey reads the secret that members share, if there is one. It may be any bytes; white
// space at its end is from whoever wrote the file.
func readKey(file string) (secret.Text, error) {
	if file == "" {
		return secret.Text{}, nil
	}
	text, err := cli.ReadPrivate(file)
	if err != nil {
		return secret.Text{}, cli.Fail(fmt.Errorf("--key-file: %w", err))
	}
	key := secret.New(strings.TrimRightFunc(text, unicode.IsSpace))
	if key.Len() == 0 {
		return secret.Text{}, errors.New("--key-file " + file + " is empty: put 32 random bytes into it")
	}
	return key, nil
}

// onlyLoopback refuses an address that others can reach: the control API does not
// authenticate its clients.
func onlyLoopback(flag, addr string) error {
	if err := cli.CheckAddr(addr); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	if !address.Loopback(addr) {
		return fmt.Errorf("--%s %s: want an address on the loopback, such as %s: clients are not authenticated", flag, addr, defaultMember)
	}
	return nil
}
