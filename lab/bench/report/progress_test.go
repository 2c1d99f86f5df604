package report

import (
	"strings"
	"testing"
	"time"
)

// shown returns what a progress of some seconds looks like.
func shown(s style) string {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := newProgress(&out, s, func() time.Time { return now })
	p.Show(0, "begin")
	now = now.Add(time.Second)
	p.Show(0.25, "soon")
	now = now.Add(9 * time.Second)
	p.Show(0.5, "half")
	p.Note("SKIPPED it")
	p.Show(1.5, "done")
	p.End()
	return out.String()
}

func TestProgress(t *testing.T) {
	for s, want := range map[style]string{
		plain: "    0s   0 %  begin\n   10s  50 %  half\nSKIPPED it\n   10s 100 %  done\n",
		lines: "progress 0.0000 begin\nprogress 0.2500 soon\nprogress 0.5000 half\nSKIPPED it\nprogress 1.0000 done\n",
		bar: "\r\x1b[?7l[..............................]   0 %      ?  begin\x1b[K\x1b[?7h" +
			"\r\x1b[?7l[#######.......................]  25 %     3s  soon\x1b[K\x1b[?7h" +
			"\r\x1b[?7l[###############...............]  50 %    10s  half\x1b[K\x1b[?7h" +
			"\r\x1b[KSKIPPED it\n" +
			"\r\x1b[?7l[##############################] 100 %     0s  done\x1b[K\x1b[?7h\r\x1b[K",
	} {
		if got := shown(s); got != want {
			t.Errorf("style %d: got\n%q, want\n%q", s, got, want)
		}
	}
}

func TestParseProgress(t *testing.T) {
	share, text, ok := ParseProgress("progress 0.2500 1,000 servers, round 1")
	if share != 0.25 || text != "1,000 servers, round 1" || !ok {
		t.Errorf("%v %q %t", share, text, ok)
	}
	for _, line := range []string{"", "SKIPPED progress 0.5", "progress", "progress x y", "progress 1.5 y", "progress NaN y"} {
		if _, _, ok := ParseProgress(line); ok {
			t.Errorf("%q was parsed", line)
		}
	}
}
