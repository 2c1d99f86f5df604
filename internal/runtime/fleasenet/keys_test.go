package fleasenet

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/secret"
)

// During a rolling key change processes with the old and the new key exchange packets. Packets with other keys
// are rejected, and duplicates are dropped.
func TestKeyChange(t *testing.T) {
	before, after, another := secret.New("0123456789abcdef"), secret.New("fedcba9876543210"), secret.New("aaaaaaaaaaaaaaaa")
	for _, test := range []struct {
		name   string
		sealed secret.Text
		own    secret.Text
		others []secret.Text
		want   outcome
	}{
		{"the same", before, before, nil, delivered},
		{"ours is the new one", before, after, []secret.Text{before}, delivered},
		{"theirs is the new one", after, before, []secret.Text{after}, delivered},
		{"the first of several", before, before, []secret.Text{after}, delivered},
		{"one that is accepted no longer", before, after, nil, unauthentic},
		{"one that was never", another, after, []secret.Text{before}, unauthentic},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, _, _ := endpoints(t, test.sealed)
			got := new(delivery)
			two := &Config{
				Self: 2, Incarnation: 22, Key: test.own, OtherKeys: test.others,
				Peers: []Peer{{Process: 1}, {Process: 2}}, Receive: got.take,
			}
			if err := two.checkMembers(); err != nil {
				t.Fatal(err)
			}
			q, err := newPacker(two, new(counters))
			if err != nil {
				t.Fatal(err)
			}
			r := &reader{inbox: newInbox(two, q, new(counters)), from: func() string { return "elsewhere" }}
			e := flease.Envelope{From: 1, Incarnation: 11}
			for range 2 { // the second one has a window
				packet, _ := p.pack(nil, UsualPacket, 2, &e, []flease.Message{{Kind: flease.KindRead, From: 9}})
				again := append([]byte(nil), packet...)
				if why := r.packet(packet); why != test.want {
					t.Fatalf("outcome %v, want %v", why, test.want)
				}
				if test.want == delivered {
					if why := r.packet(again); why != replayed {
						t.Errorf("outcome of the duplicate: %v", why)
					}
				}
			}
		})
	}
}

func TestOtherKeysAreChecked(t *testing.T) {
	for _, c := range []Config{
		{Key: secret.New("0123456789abcdef"), OtherKeys: []secret.Text{secret.New("short")}},
		{OtherKeys: []secret.Text{secret.New("0123456789abcdef")}},
	} {
		c.Self, c.Incarnation, c.Receive = 1, 1, new(delivery).take
		if c.checkMembers() == nil {
			t.Errorf("keys %q with %q are accepted", c.OtherKeys, c.Key)
		}
	}
}
