package dashboard

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secret"
	"github.com/leasehold-dev/leasehold/server/browsertest"
)

// quarter returns a fourth of the key space.
func quarter(i int) leasehold.Range {
	return leasehold.Range{Start: leasehold.Key(i) << 62, Limit: leasehold.Key(i+1) << 62}
}

// invented returns a manager with data for every section. Owner 1 has the first and third quarter,
// owner 2 has the second, and owner 3 has lost the last, which is vacant.
func invented() *world {
	w := &world{fakeAdmin: newFakeAdmin()}
	for i, owner := range []int{1, 2, 1, 3} {
		w.change(table.Granted, quarter(i), leasehold.Generation(i+1), someone(owner), nil)
		w.newest++
	}
	w.past[1].Reason = leaseholdv1.Reason_REASON_LOAD
	w.change(table.Vacated, quarter(3), 4, someone(3), nil)
	for i, weight := range []float64{1, 3} {
		w.owners = append(w.owners, &leaseholdv1.OwnerStatus{
			Holder: &leaseholdv1.Holder{Owner: fmt.Sprintf("owner-%d", i+1), Session: []byte{byte(i), 2, 3}, Addr: "10.0.0.1:80", Weight: weight},
			State:  leaseholdv1.OwnerState_OWNER_STATE_MEMBER, Leases: uint32(2 - i), Share: .5 - .25*float64(i), Patience: 12e9, Load: 30,
			MovesState: i == 0, MovesOut: uint32(i), Supervised: []*bool{new(true), nil}[i],
		})
	}
	w.moves = &leaseholdv1.ListMovesResponse{UnderWay: 1, Waiting: 4, Moves: []*leaseholdv1.MoveStatus{{
		Id: "m1", Start: uint64(quarter(0).Start), Limit: uint64(quarter(0).Limit), From: "owner-1", To: "owner-2", State: leaseholdv1.MoveState_MOVE_STATE_COPYING,
		Records: 1234, Bytes: 5 << 20, Age: 90e9, Reason: leaseholdv1.Reason_REASON_DRAIN,
	}, {Start: uint64(quarter(3).Start), From: "owner-1", To: "owner-2"}}}
	w.hot = &leaseholdv1.ListHotKeysResponse{Keys: []*leaseholdv1.HotKey{{Key: 0x4000000000000001, Rate: 12.34, Owner: "owner-2"}}}
	w.lookups = &leaseholdv1.ListLookupsResponse{Total: 700, Lookups: []*leaseholdv1.LookupStatus{
		{Addr: "10.0.0.9:1", ConnectedFor: 3600e9, Heard: 2e9, Lsn: 5},
		{Addr: "10.0.0.9:1", ConnectedFor: 60e9, Heard: 1e9, Lsn: 4, Behind: 1},
	}, Autosharding: &leaseholdv1.AutoshardingStatus{Clients: 3, Sent: 8, Accepted: 6, Rejected: 2, Rejection: "10.0.0.8:1, generation 5: slices overlap"}}
	w.members = &leaseholdv1.ListMembersResponse{Members: []*leaseholdv1.Member{{Name: "m2", PeerUrls: []string{"http://10.0.0.2:7500"}}}}
	w.besides = &leaseholdv1.GetStatusResponse{
		Store: "in a dream", Warnings: []string{"something is odd"},
		Managers: []*leaseholdv1.ManagerStatus{
			{Addr: "m1:7400", Build: "v1", Leads: true, Heard: true},
			{Addr: "m2:7400", Http: "0.0.0.0:7401", Heard: true, HeardAgo: 3e9},
			{Addr: "m3:7400", Heard: true, HeardAgo: 130e9},
			{Addr: "m4:7400"},
		},
		Leaderships: []*leaseholdv1.Leadership{{At: timestamppb.New(time.UnixMilli(1_700_000_000_000)), Leader: "m0:7400", Term: 1}},
	}
	return w
}

// TestSections: each section shows the manager's data.
func TestSections(t *testing.T) {
	s := show(t, browsertest.Start(t), invented(), Config{Token: secret.New(aToken)}, "")
	s.Await("everything is shown", `document.querySelectorAll("#ranges tbody tr").length === 4 && document.querySelectorAll("#hot tbody tr").length === 1 && document.querySelector("#managers a") !== null`)
	is(s, `location.hash`, "#/pool")
	is(s, cells("owners", 0), "owner-1|owner-2")
	is(s, cells("owners", 2), "member|member")
	is(s, cells("owners", 3), "1|3")
	is(s, cells("owners", 5), "50 %|25 %")
	is(s, cells("owners", 6), "30/s, 200 % of its share by weight|30/s, 66.7 % of its share by weight")
	is(s, cells("owners", 7), "-|cannot")
	is(s, cells("owners", 8), "yes|unknown")
	is(s, `[...document.querySelectorAll("#owners .bar")].map(b => [b.className, b.children[0].style.width, b.children[1].style.left].join()).join("|")`, "bar over,80%,40%|bar,80%,99%")
	is(s, cells("ranges", 0), "0000000000000000-4000000000000000|4000000000000000-8000000000000000|8000000000000000-c000000000000000|c000000000000000-end")
	is(s, cells("ranges", 1), "owner-1|owner-2|owner-1|none")
	is(s, cells("ranges", 2), "25 %|25 %|25 %|25 %")
	is(s, cells("ranges", 3), "1|2|3|-")
	is(s, `/^(\d+ s\|){3}\d+ s$/.test(`+cells("ranges", 4)+`)`, true)
	is(s, `/^never\|never\|never\|.*20\d\d.* \(LSN 5\)$/.test(`+cells("ranges", 5)+`)`, true)
	is(s, `[...document.querySelectorAll("#moves td")].map(c => c.textContent).join("|")`,
		"0000000000000000-4000000000000000|owner-1|owner-2|copying|because an operator has an owner drained|1,234 records, 5 MiB|90 s|c000000000000000-end|owner-1|owner-2|waiting|not known|0 records, 0 B|-")
	is(s, `document.querySelector("#moves .count").textContent`, "2 moves; there are 5")
	is(s, cells("hot", 0)+`+" "+`+cells("hot", 1)+`+" "+`+cells("hot", 2), "4000000000000001 12.3 owner-2")
	is(s, cells("lookups", 0), "10.0.0.9:1|10.0.0.9:1")
	is(s, cells("lookups", 1), "1 change|none")
	is(s, cells("lookups", 3), "60 s|60 min")
	is(s, `document.querySelector("#lookups .count").textContent`, "2 lookups; there are 700")
	s.showsText("#autosharding", "3 gRPC auto-sharding clients: 6 assignments accepted, 2 rejected, the last by 10.0.0.8:1, generation 5: slices overlap")
	is(s, `Object.fromEntries([...document.querySelectorAll("#figures > div")].map(d => [d.children[0].textContent, d.children[1].textContent]))["keys without an owner"]`, "25 %")
	is(s, `document.querySelectorAll("#figures .trouble").length`, 2)
	for _, text := range []string{"something is odd", "m1:7400 leads, v1", "m2:7400 standby", "m3:7400 silent for 2 min", "m4:7400 no contact", "m2 at http://10.0.0.2:7500 does not respond", "m0:7400, term 1", "since Nov 14, 2023"} {
		s.showsText("#managers", text)
	}
	is(s, `[...document.querySelectorAll("#managers a")].map(a => a.getAttribute("href")).join()`, "http://m2:7401/#/pool")
	s.showsText("#events .granted", "owner-2 got 4000000000000000-8000000000000000, generation 2: to divide the load")
	s.showsText("#events .vacated", "owner-3 lost c000000000000000-end, and its state is lost: expired, generation 4")
	s.showsText("#events .leader", "m1:7400 leads, term 1")
	is(s, `document.querySelectorAll("#events li").length`, 6)

	t.Run("the ring is to scale", func(t *testing.T) { s.in(t).ring() })
	t.Run("tables are sorted and filtered", func(t *testing.T) { s.in(t).tables() })
	t.Run("events are filtered", func(t *testing.T) { s.in(t).filters() })
	t.Run("focus and scroll position stay", func(t *testing.T) { s.in(t).keepsFocus() })
	t.Run("it can be read", func(t *testing.T) { s.in(t).readable() })
	t.Run("words and numbers", func(t *testing.T) { s.in(t).words() })
	t.Run("owners leave and are late", func(t *testing.T) { s.in(t).ownerStates() })
	t.Run("orders", func(t *testing.T) { s.in(t).orders() })
	t.Run("why a key is where it is", func(t *testing.T) { s.in(t).reasons() })
	t.Run("explanations", func(t *testing.T) { s.in(t).explanations() })
}
