package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/server/console"
)

// someTop returns a snapshot with a number of owners.
func someTop(owners int) *Snapshot {
	at := time.Date(2026, 11, 15, 10, 20, 31, 0, time.Local)
	s := &Snapshot{
		At: at, Namespace: "presence", Policy: "adaptive",
		Status: admin.Status{
			Leader: "10.0.0.1:7400", Term: 3, LedFor: admin.Seconds(7985 * time.Second), Manager: "10.0.0.2:7400", Store: "etcd, embedded, 3 members",
			Namespaces: []admin.NamespaceStatus{
				{Name: "other", Problem: "loading its table"},
				{Name: "presence", Ready: true, LSN: 1234, Owners: uint32(owners), Ranges: 128, Lookups: 7, Moves: 2},
			},
		},
		Members: []admin.Member{{Name: "m1", Healthy: true}, {Name: "m2"}, {Name: "m3", Healthy: true}},
		Moves: admin.Moves{UnderWay: 1, Waiting: 9, Moves: []admin.Move{
			{ID: "1", Share: 0.25, From: "server-0001", To: "server-0003", State: "copying", Records: 1234, Bytes: 5 << 20, Age: admin.Seconds(1500 * time.Millisecond)},
			{Share: 0.125, From: "server-0002", To: "server-0003", State: "waiting"},
		}},
		HotKeys: []admin.HotKey{{Key: 1 << 63, Rate: 4321, Owner: "server-0001"}},
	}
	yes := true
	for i := range owners {
		s.Owners = append(s.Owners, topOwner{Owner: admin.Owner{
			Owner: fmt.Sprintf("server-%04d", i+1), Addr: fmt.Sprintf("10.1.0.%d:8080", i%250+1), State: "member", Weight: 1,
			Leases: uint32(i % 7), Share: 1 / float64(owners), Load: float64(100 * (i*7919%31 + 1)), Patience: admin.Seconds(11 * time.Second), MovesState: &yes,
		}})
	}
	if owners >= 3 {
		o := s.Owners
		o[0].MovesOut, o[2].MovesIn, o[2].Draining, o[1].Late, o[1].Patience = 1, 1, true, true, admin.Seconds(4200*time.Millisecond)
		o[2].State, o[2].Weight = "silent", 2
	}
	for i := range 30 {
		s.Events = append(s.Events, admin.Event{
			At: at.Add(time.Duration(i-30) * time.Second), Type: admin.EventChange, Namespace: "presence",
			Change: &admin.Change{
				LSN: leasehold.LSN(1200 + i), Kind: admin.ChangeGranted, Owner: "server-0001", Generation: 41,
				Interval: admin.Interval{Limit: 1 << 63},
			},
		})
	}
	s.Events = append(s.Events, admin.Event{At: at, Type: admin.EventLeader, Leader: &admin.LeaderName{Term: 3, Leader: "10.0.0.1:7400"}})
	return s
}

// somePages returns the contents of the pages.
func somePages(of Wish, owners int) topPaged {
	p := topPaged{Of: of, lookups: admin.Lookups{Total: 1234}, Log: someTop(owners).Events}
	ranges := uint64(16 * owners)
	for i := range ranges {
		keys := admin.Interval{Start: admin.Point(i * (1 << 59)), Limit: admin.Limit((i + 1) * (1 << 59))}
		p.Ranges = append(p.Ranges, admin.Range{
			Interval: keys, Share: keys.Share(), Generation: leasehold.Generation(40 + i), LostAt: leasehold.LSN(i % 3 * 100), Owner: fmt.Sprintf("server-%04d", i%uint64(owners)+1),
		})
	}
	if ranges > 1 {
		p.Ranges[1].Owner, p.Ranges[1].Generation = "", 0
	}
	for i := range owners {
		p.lookups.Lookups = append(p.lookups.Lookups, admin.Lookup{
			Addr: fmt.Sprintf("10.2.0.%d:4711", i+1), Connected: admin.Seconds(time.Hour), HeardAgo: admin.Seconds(i) * admin.Seconds(20*time.Second), Behind: uint64(i) * 600,
		})
	}
	if of.Page == PageKey {
		key, _ := keyTyped(of.Key)
		at := time.Date(2026, 11, 15, 10, 20, 31, 0, time.Local)
		p.Found = &topFound{Key: key, Held: admin.Range{Owner: "server-0001", Addr: "10.1.0.1:8080", Generation: 43, Share: 0.5, Interval: admin.Interval{Start: 1 << 63}}}
		p.Found.History.Entries = []admin.Change{
			{At: at, Kind: admin.ChangeMoved, From: "server-0002", Owner: "server-0001", Generation: 43, Interval: admin.Interval{Start: 1 << 63}},
			{At: at.Add(-time.Hour), Kind: admin.ChangeVacated, Cause: "expired", Owner: "server-0003", Generation: 41, Interval: admin.Interval{Start: 1 << 63}},
		}
	}
	return p
}

// TestTopFrames draws frames, each described by a line of testdata/frames:
//
//	frame width=60 height=20 owners=3 [page=2] [find=x] [sort=share] [filter=x] [scroll=9] [help] [bare]
//	      [stale] [old] [never] [unready] [absent] [vacant] [hostile] [lull] [asking] [problem]
func TestTopFrames(t *testing.T) {
	datadriven.RunTest(t, "testdata/frames", func(t *testing.T, d *datadriven.TestData) string {
		var owners int
		var by string
		v := topView{patience: 3 * time.Second}
		d.ScanArgs(t, "width", &v.width)
		d.ScanArgs(t, "height", &v.height)
		d.ScanArgs(t, "owners", &owners)
		d.MaybeScanArgs(t, "filter", &v.filter)
		d.MaybeScanArgs(t, "scroll", &v.scroll)
		if d.MaybeScanArgs(t, "sort", &by) {
			v.sort, _ = sortNamed(by)
		}
		s := someTop(owners)
		var page string
		if d.MaybeScanArgs(t, "find", &v.sought) {
			v.page = PageKey
		}
		if d.MaybeScanArgs(t, "page", &page) {
			v.page, _ = pageNamed(page)
		}
		s.Paged = somePages(Wish{s.Namespace, v.page, v.sought}, owners)
		v.now, v.help = s.At, d.HasArg("help")
		disturb(d, s, &v)
		frame := ansi.Strip(topScreen(s, v))
		for i, line := range strings.Split(strings.TrimSuffix(frame, "\n"), "\n") {
			if lipgloss.Width(line) > v.width || v.height > 0 && i >= v.height {
				t.Errorf("line %d is wider than %d, or one too many: %q", i+1, v.width, line)
			}
		}
		var out strings.Builder // without trailing spaces
		for line := range strings.Lines(frame) {
			out.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
		return strings.TrimRight(out.String(), "\n") + "\n"
	})
}

// disturb applies the conditions of a test line to a snapshot and a view.
func disturb(d *datadriven.TestData, s *Snapshot, v *topView) {
	if d.HasArg("stale") || d.HasArg("never") {
		s.Stale = &staleDocument{Since: s.At.Add(-12 * time.Second), Why: "no manager answers 10.0.0.1:7400: connection refused 10.0.0.2:7400: connection refused"}
	}
	if d.HasArg("never") {
		s.Status, s.Owners, s.Events = admin.Status{}, nil, nil
	}
	if d.HasArg("old") {
		v.now = s.At.Add(4 * time.Second)
	}
	if d.HasArg("lull") {
		s.Status.Namespaces[1].Lull = "there are 0 requests per second"
	}
	if d.HasArg("asking") {
		s.Paged = topPaged{}
	}
	if d.HasArg("problem") {
		s.Paged.Problem = "the manager is \x1b[31mtoo old"
	}
	if d.HasArg("unready") {
		s.Namespace = "other"
	}
	if d.HasArg("absent") {
		s.Namespace = "nosuch"
	}
	if d.HasArg("bare") {
		s.Events, s.HotKeys, s.Moves, s.Members = nil, nil, admin.Moves{}, nil
	}
	if d.HasArg("vacant") {
		s.Vacant, s.Status.Warnings = 0.125, []string{"10.0.0.3:7400 does not vote: it has just started"}
	}
	if d.HasArg("hostile") {
		s.Owners[0].Owner.Owner, s.Owners[1].Owner.Owner = "\x1b[2J\x1b]0;x\a<b>evil</b>", "ユーザー・サーバー"
		s.Status.Store = "\x1b[31m"
		s.Paged.Ranges[0].Owner, s.Paged.lookups.Lookups[0].Addr = s.Owners[0].Owner.Owner, s.Owners[0].Owner.Owner
	}
}

// TestStaleFrameIsGrey: a stale frame is grey, without other colours.
func TestStaleFrameIsGrey(t *testing.T) {
	s := someTop(3)
	v := topView{width: 100, height: 30}
	if fresh := topScreen(s, v); !strings.Contains(fresh, console.Good("10.0.0.1:7400")) {
		t.Error("a fresh frame has no colours")
	}
	s.Stale = &staleDocument{Since: s.At, Why: "gone"}
	if old := topScreen(s, v); strings.Contains(old, console.Good("10.0.0.1:7400")) || !strings.Contains(old, "\x1b[2m") || !strings.Contains(old, console.Bad("NO ANSWER")[:4]) {
		t.Errorf("a stale frame is not grey: %q", old)
	}
}

func press(m topModel, keys ...string) topModel {
	for _, k := range keys {
		message := tea.KeyPressMsg{Text: k}
		switch k {
		case "down":
			message = tea.KeyPressMsg{Code: tea.KeyDown}
		case "end":
			message = tea.KeyPressMsg{Code: tea.KeyEnd}
		case "enter":
			message = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			message = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "backspace":
			message = tea.KeyPressMsg{Code: tea.KeyBackspace}
		case "left":
			message = tea.KeyPressMsg{Code: tea.KeyLeft}
		}
		next, _ := m.Update(message)
		m = next.(topModel)
	}
	return m
}

func TestTopKeys(t *testing.T) {
	var chosen []Wish
	m := topModel{view: topView{width: 80}, choose: func(w Wish) { chosen = append(chosen, w) }}
	m = press(m, "n") // no snapshot yet
	next, _ := m.Update(tea.WindowSizeMsg{Width: 60, Height: 20})
	next, _ = next.Update(someTop(100))
	m = next.(topModel)
	for _, test := range []struct {
		keys string
		want topView
	}{
		{"s", topView{sort: byShare}},
		{"s s", topView{sort: byName}},
		{"s s s", topView{}},
		{"down down", topView{scroll: 2}},
		{"end", topView{scroll: 99}},
		{"/ 0 0 4 backspace", topView{filter: "00", filtering: true}},
		{"/ q enter", topView{filter: "q"}},
		{"/ q esc", topView{}},
		{"/ q enter esc", topView{}},
		{"?", topView{help: true}},
		{"? q", topView{}},
		{"end / 7", topView{filter: "7", filtering: true}},
		{"f a q backspace", topView{finding: true, typing: "a"}},
		{"f a esc", topView{}},
		{"f enter", topView{}},
		{"down 1", topView{}},
	} {
		got := press(m, strings.Fields(test.keys)...).view
		test.want.width, test.want.height, test.want.now = 60, 20, got.now
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(topView{})); diff != "" {
			t.Errorf("%s:\n%s", test.keys, diff)
		}
	}
	press(m, "n", "p", "left")
	other := Wish{Namespace: "other"}
	if diff := cmp.Diff([]Wish{other, other, other}, chosen, cmp.AllowUnexported(Wish{})); diff != "" {
		t.Error(diff)
	}
	chosen = nil
	press(m, "2", "2", "down", "4", "f", "x", "q", "enter", "n", "1")
	if diff := cmp.Diff([]Wish{
		{"presence", PageRanges, ""}, {"presence", PageEvents, ""}, {"presence", PageKey, "xq"}, {"other", PageKey, "xq"}, {"presence", pageOwners, "xq"},
	}, chosen, cmp.AllowUnexported(Wish{})); diff != "" {
		t.Error(diff)
	}
	for _, k := range []tea.KeyPressMsg{{Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		if _, command := m.Update(k); command == nil || command() != (tea.QuitMsg{}) {
			t.Errorf("%s does not leave", k)
		}
	}
	if !strings.Contains(ansi.Strip(m.View().Content), "100 owners by load, 1 to ") {
		t.Error(m.View().Content)
	}
}

// BenchmarkTopFrame measures one frame for 1,000 owners.
func BenchmarkTopFrame(b *testing.B) {
	s := someTop(1000)
	for b.Loop() {
		topScreen(s, topView{width: 120, height: 50})
	}
}

// An owner whose leases are suspended is shown as such, whatever else it is.
func TestSuspendedOwnerIsShown(t *testing.T) {
	for _, o := range []topOwner{
		{Owner: admin.Owner{State: "silent", Suspended: true}},
		{Owner: admin.Owner{State: "member", Suspended: true}, Late: true},
	} {
		if got := o.stateName(); got != "suspended" {
			t.Errorf("%+v is shown as %q", o, got)
		}
	}
}
