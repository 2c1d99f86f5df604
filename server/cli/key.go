package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
)

const KeyHelp = `KEY is a name, which is hashed as the libraries hash names, or a key of 64 bits
in hexadecimal: with 0x before it, or with --hex. For a name that begins with 0x
say --hex=false.`

// A KeyArgument is a key as somebody wrote it.
type KeyArgument struct {
	cmd *cobra.Command
	hex bool

	Name string // "" if the key was written as such
	Key  leasehold.Key
}

func (k *KeyArgument) Parse(text string) (*KeyArgument, error) {
	digits, prefixed := strings.CutPrefix(strings.ToLower(text), "0x")
	if k.cmd.Flags().Changed("hex") && !k.hex || !k.hex && !prefixed {
		k.Name, k.Key = text, leasehold.KeyOf(text)
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
	k.Key = key
	return k, nil
}

// Text writes the key for people.
func (k *KeyArgument) Text() string {
	if k.Name == "" {
		return k.Key.String()
	}
	return fmt.Sprintf("%s, the hash of %q", k.Key, k.Name)
}

func AddKeyFlag(cmd *cobra.Command) *KeyArgument {
	k := &KeyArgument{cmd: cmd}
	cmd.Flags().BoolVar(&k.hex, "hex", false, "KEY is a key in hexadecimal, not a name")
	return k
}
