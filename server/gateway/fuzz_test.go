package gateway

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

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
		g := &Settings{}
		cmd := &cobra.Command{}
		g.AddFlags(cmd)
		if cmd.ParseFlags(strings.Split(lines, "\n")) != nil || g.Validate() != nil {
			return
		}
		if g.transport.Replay == 0 || g.transport.Replay > maxGatewayReplay || g.proxy.MaxBody < 0 || g.transport.Key.String() == "" {
			t.Fatalf("%q: %+v", lines, g)
		}
	})
}
