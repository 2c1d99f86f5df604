package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
)

const keyHelp = `KEY is a name, which is hashed as the libraries hash names, or a key of 64 bits
in hexadecimal: with 0x before it, or with --hex. For a name that begins with 0x
say --hex=false.`

// A keyArgument is a key as somebody wrote it.
type keyArgument struct {
	cmd *cobra.Command
	hex bool

	name string // "" if the key was written as such
	key  leasehold.Key
}

func (k *keyArgument) parse(text string) (*keyArgument, error) {
	digits, prefixed := strings.CutPrefix(strings.ToLower(text), "0x")
	if k.cmd.Flags().Changed("hex") && !k.hex || !k.hex && !prefixed {
		k.name, k.key = text, leasehold.KeyOf(text)
		return k, nil
	}
	const most = 16
	if len(digits) == 0 || len(digits) > most {
		return nil, fmt.Errorf("%q: want 1 to %d hexadecimal digits, have %d; for a name say --hex=false", text, most, len(digits))
	}
	key, err := leasehold.ParseKey(strings.Repeat("0", most-len(digits)) + digits)
	if err != nil {
		return nil, fmt.Errorf("%q: want hexadecimal digits; for a name say --hex=false", text)
	}
	k.key = key
	return k, nil
}

// text writes the key for people.
func (k *keyArgument) text() string {
	if k.name == "" {
		return k.key.String()
	}
	return fmt.Sprintf("%s, the hash of %q", k.key, k.name)
}

func addKeyFlag(cmd *cobra.Command) *keyArgument {
	k := &keyArgument{cmd: cmd}
	cmd.Flags().BoolVar(&k.hex, "hex", false, "KEY is a key in hexadecimal, not a name")
	return k
}
