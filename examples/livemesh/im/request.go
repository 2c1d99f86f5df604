package im

import (
	"net/netip"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/examples/livemesh/jsonhttp"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// Bounds on a presence.
const (
	MaxUser  = jsonhttp.MaxName // bytes of a user's name
	MaxField = 256              // bytes of each other text
)

// A SignOn is what a session publishes of a user.
type SignOn struct {
	Session string `json:"session"`
	Address string `json:"address"`
	Status  string `json:"status"`
	IP      string `json:"ip"`
	// If is the version of another session's presence that is replaced. Without it there
	// must be none.
	If leasemap.Version `json:"if,omitzero"`
	// Known is the status that others know already, of a user who was lost: if it is still
	// the same, that the user is there is no news.
	Known string `json:"known,omitempty"`
}

// A Change is what a session changes of a presence. What is nil stays as it is.
type Change struct {
	Session string  `json:"session"`
	Address *string `json:"address,omitempty"`
	Status  *string `json:"status,omitempty"`
	IP      *string `json:"ip,omitempty"`
	// If is the version that the presence must have. Default: any.
	If leasemap.Version `json:"if,omitzero"`
}

func (c *Change) apply(to *Presence) {
	set := func(field, value *string) {
		if value != nil {
			*field = *value
		}
	}
	set(&to.Address, c.Address)
	set(&to.Status, c.Status)
	set(&to.IP, c.IP)
}

func (on *SignOn) validate(user string) error {
	c := Change{Session: on.Session, Address: &on.Address, Status: &on.Status, IP: &on.IP}
	return c.check("sign on", user)
}

func (c *Change) validate(user string) error {
	if c.Address == nil && c.Status == nil && c.IP == nil {
		return leasehold.Errorf("change presence", leasehold.Invalid, user, "nothing is to be changed: want an address, a status or an ip")
	}
	return c.check("change presence", user)
}

func (c *Change) check(op, user string) error {
	if err := validSession(op, user, c.Session); err != nil {
		return err
	}
	for _, field := range []struct {
		name  string
		value *string
	}{{"address", c.Address}, {"status", c.Status}, {"ip", c.IP}} {
		if field.value == nil {
			continue
		}
		if err := validText(op, user, field.name, *field.value); err != nil {
			return err
		}
	}
	if c.IP == nil {
		return nil
	}
	if _, err := netip.ParseAddr(*c.IP); err != nil {
		return leasehold.Errorf(op, leasehold.Invalid, user, "ip: %w; want 10.0.0.1 or 2001:db8::1 for instance", err)
	}
	return nil
}

func validSession(op, user, session string) error {
	if err := jsonhttp.ValidName(op, "a user", user); err != nil {
		return err
	}
	return validText(op, user, "session", session)
}

func validText(op, user, name, value string) error {
	if value == "" {
		return leasehold.Errorf(op, leasehold.Invalid, user, "%s is missing", name)
	}
	if len(value) > MaxField {
		return jsonhttp.TooLarge(user, "%s has %d bytes, and %d are allowed", name, len(value), MaxField)
	}
	return nil
}
