package dashboard

import (
	"cmp"
	"net"
	"slices"
	"time"

	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// mostRows bounds the lists that are sent as a whole again and again. The page says how
// many there are.
const mostRows = 200

// A movesJSON is state on its way from one owner to another.
type movesJSON struct {
	Moves    []moveJSON `json:"moves"` // the oldest first
	UnderWay uint32     `json:"underWay"`
	Waiting  uint32     `json:"waiting"`
}

type moveJSON struct {
	ID      string  `json:"id"` // "" while it waits
	Start   string  `json:"start"`
	Limit   string  `json:"limit"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	State   string  `json:"state"`
	Records string  `json:"records"`
	Bytes   string  `json:"bytes"`
	Age     float64 `json:"age"`    // seconds
	Reason  string  `json:"reason"` // why, as the end of a sentence; "" if that is not known
}

func movesOf(a *leaseholdv1.ListMovesResponse) *movesJSON {
	out := &movesJSON{Moves: []moveJSON{}, UnderWay: a.GetUnderWay(), Waiting: a.GetWaiting()}
	for _, m := range a.GetMoves()[:min(mostRows, len(a.GetMoves()))] {
		out.Moves = append(out.Moves, moveJSON{
			ID: m.GetId(), Start: keyText(m.GetStart()), Limit: keyText(m.GetLimit()), From: m.GetFrom(), To: m.GetTo(),
			State: moveState(m), Records: decimal(m.GetRecords()), Bytes: decimal(m.GetBytes()), Age: seconds(m.GetAge()),
			Reason: reasonText(m.GetReason()),
		})
	}
	return out
}

func moveState(m *leaseholdv1.MoveStatus) string {
	switch m.GetState() {
	case leaseholdv1.MoveState_MOVE_STATE_UNSPECIFIED:
		if m.GetId() == "" {
			return "waiting"
		}
		return "begun"
	default:
		return enumText(m.GetState().String(), "MOVE_STATE_")
	}
}

// A lookupsJSON is the lookups that are connected to this manager.
type lookupsJSON struct {
	Total uint32       `json:"total"`
	Rows  []lookupJSON `json:"rows"` // those that lag most first
}

type lookupJSON struct {
	Addr      string  `json:"addr"`
	Connected float64 `json:"connected"` // seconds
	Heard     float64 `json:"heard"`     // seconds ago
	LSN       string  `json:"lsn"`
	Behind    string  `json:"behind"` // changes that it lacked when it asked
}

func lookupsOf(a *leaseholdv1.ListLookupsResponse) *lookupsJSON {
	rows := slices.Clone(a.GetLookups())
	slices.SortStableFunc(rows, func(a, b *leaseholdv1.LookupStatus) int {
		return cmp.Or(cmp.Compare(b.GetBehind(), a.GetBehind()), cmp.Compare(seconds(b.GetHeard()), seconds(a.GetHeard())))
	})
	out := &lookupsJSON{Total: a.GetTotal(), Rows: []lookupJSON{}}
	for _, l := range rows[:min(mostRows, len(rows))] {
		out.Rows = append(out.Rows, lookupJSON{l.GetAddr(), seconds(l.GetConnectedFor()), seconds(l.GetHeard()), decimal(l.GetLsn()), decimal(l.GetBehind())})
	}
	return out
}

// A hotJSON is the keys that cost most, the hottest first.
type hotJSON struct {
	Keys []hotKeyJSON `json:"keys"`
}

type hotKeyJSON struct {
	Key   string  `json:"key"`
	Rate  float64 `json:"rate"`
	Owner string  `json:"owner"`
}

func hotOf(a *leaseholdv1.ListHotKeysResponse) *hotJSON {
	out := &hotJSON{Keys: []hotKeyJSON{}}
	for _, k := range a.GetKeys() {
		out.Keys = append(out.Keys, hotKeyJSON{keyText(k.GetKey()), brief(k.GetRate()), k.GetOwner()})
	}
	return out
}

// A managerJSON is a manager of the group.
type managerJSON struct {
	Addr  string  `json:"addr"`
	Leads bool    `json:"leads"`
	Heard bool    `json:"heard"` // the leader has heard from it
	Ago   float64 `json:"ago"`   // seconds since, if that is too long; else 0
	Build string  `json:"build"`
	Page  string  `json:"page"` // where its dashboard is: host and port; "" if it is not known
}

// heardLately is how long a manager may be silent: it speaks every five seconds.
const heardLately = 15 * time.Second

func managersOf(s *leaseholdv1.GetStatusResponse) []managerJSON {
	out := []managerJSON{}
	for _, m := range s.GetManagers() {
		row := managerJSON{Addr: m.GetAddr(), Leads: m.GetLeads(), Heard: m.GetHeard(), Build: m.GetBuild(), Page: pageOf(m)}
		if ago := time.Duration(m.GetHeardAgo()); ago > heardLately {
			row.Ago = ago.Round(5 * time.Second).Seconds()
		}
		out = append(out, row)
	}
	return out
}

// pageOf returns where the dashboard of a manager is. One that listens everywhere is where
// others reach it.
func pageOf(m *leaseholdv1.ManagerStatus) string {
	host, port, err := net.SplitHostPort(m.GetHttp())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, _, err = net.SplitHostPort(m.GetAddr()); err != nil {
			return ""
		}
	}
	return net.JoinHostPort(host, port)
}

// A membersJSON is the managers whose stores form the group, if they keep it among
// themselves.
type membersJSON struct {
	Rows []memberJSON `json:"rows"`
}

type memberJSON struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Learner bool   `json:"learner"`
	Healthy bool   `json:"healthy"`
}

func membersOf(a *leaseholdv1.ListMembersResponse) *membersJSON {
	out := &membersJSON{Rows: []memberJSON{}}
	for _, m := range a.GetMembers() {
		url := ""
		if len(m.GetPeerUrls()) > 0 {
			url = m.GetPeerUrls()[0]
		}
		out.Rows = append(out.Rows, memberJSON{m.GetName(), url, m.GetLearner(), m.GetHealthy()})
	}
	return out
}

// seconds is whole ones: fractions change with every look.
func seconds(nanoseconds int64) float64 {
	return float64(time.Duration(nanoseconds).Round(time.Second) / time.Second)
}
