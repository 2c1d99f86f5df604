package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/admin"
)

// The journal is read in pages, and only as far as the flags require.
func TestEvents(t *testing.T) {
	f := startFake(t, inPresence(&fakeManager{}))
	diskless := startFake(t, inPresence(&fakeManager{diskless: true}))
	const all = "1200 vacated, 1201 granted, leader, 1202 moved"
	for _, test := range []struct {
		manager *fakeManager
		args    string
		want    string // LSNs and kinds
		flags   string
		text    string // in the output without --json
	}{
		{f, "", all, "truncated", "Earlier events are no longer in the journal.\n"},
		{f, "--most 2", "leader, 1202 moved", "more", "Earlier events are omitted"},
		{f, "--kind loss", "1200 vacated", "truncated", "vacated: expired"},
		{f, "--kind expired,moved", "1200 vacated, 1202 moved", "truncated", "moved from server-2"},
		{f, "--kind leader", "leader", "truncated", "10.0.0.1:7400 leads"},
		{f, "--kind restarted", "", "truncated", "The journal has no such event.\n"},
		{f, "--since 2026-11-15T10:20:31Z", "1201 granted, leader, 1202 moved", "truncated", ""},
		{f, "--since 2026-11-15T10:20:33Z", "", "truncated", "The journal has no such event"},
		{diskless, "", all, "truncated diskless", "Earlier events are not available: these managers keep only events since the current leader was elected.\n"},
	} {
		var out, plain bytes.Buffer
		args := append([]string{"events", "--managers", test.manager.addr}, strings.Fields(test.args)...)
		if got := run(t.Context(), append(args, "--json"), &out, &out); got != 0 {
			t.Fatalf("%s: exit status %d: %s", test.args, got, out.String())
		}
		var d admin.Events
		if err := json.Unmarshal(out.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		if got := kindsOf(d.Events); got != test.want {
			t.Errorf("%s: got %s, want %s", test.args, got, test.want)
		}
		if diff := cmp.Diff(test.flags, flagsOf(d)); diff != "" {
			t.Errorf("%s: %s", test.args, diff)
		}
		if got := run(t.Context(), args, &plain, &plain); got != 0 || !strings.Contains(plain.String(), test.text) {
			t.Errorf("%s: exit status %d, %s, want %q", test.args, got, plain.String(), test.text)
		}
	}
}

func kindsOf(events []admin.Event) string {
	var kinds []string
	for _, e := range events {
		if e.Change != nil {
			kinds = append(kinds, fmt.Sprintf("%d %s", e.Change.LSN, e.Change.Kind))
		} else {
			kinds = append(kinds, e.Type)
		}
	}
	return strings.Join(kinds, ", ")
}

func flagsOf(d admin.Events) string {
	var flags []string
	for name, set := range map[string]bool{"more": d.More, "truncated": d.Truncated, "diskless": d.Diskless} {
		if set {
			flags = append(flags, name)
		}
	}
	slices.Sort(flags)
	slices.Reverse(flags)
	return strings.Join(flags, " ")
}
