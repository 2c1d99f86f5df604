package main

import (
	"bytes"
	"strings"
	"testing"
)

// A diskless leader has no history from before its term: commands show that as unknown, neither as a loss nor
// as none, and they show warnings about the group.
func TestDisklessManagerOutput(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{diskless: true}))
	for args, want := range map[string]string{
		"key find 0x8000000000000000":        "state lost  unknown before LSN 1,200\n",
		"key find 0xc000000000000000":        "state lost  at LSN 1,234\n",
		"key find 0x0":                       "state lost  never\n",
		"key find 0x8000000000000000 --json": `"lostAt": "1200",` + "\n" + `  "lostUnknown": true`,
		"range list":                         "unknown before LSN 1,200\n",
		"range list --owner server-2 --json": `"lostUnknown": true`,
		"key history 0x0":                    "-  held before  server-1  server-1:8080          41  0000000000000000-8000000000000000\nEarlier changes are no longer in the journal.\n",
		"key history 0x0 --json":             `"before": {`,
		"status":                             "10.0.0.1:7400, term 3\n",
		"status --managers " + f.addr:        "Warning: 10.0.0.3:7400 does not vote: it has just started.\n",
		"status --json":                      `"10.0.0.3:7400 does not vote: it has just started"`,
	} {
		var out, errs bytes.Buffer
		got := run(t.Context(), append(strings.Fields(args), "--managers", f.addr), &out, &errs)
		if got != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit status %d, want %q\n%s%s", args, got, want, out.String(), errs.String())
		}
	}
}
