package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/leaseholdtest"
	"github.com/leasehold-dev/leasehold/leasemap"
)

// An effect is refused after one of a later generation of the same sender, and changes no Receiver in place.
func TestReceiver(t *testing.T) {
	var r fence.Receiver
	for i, c := range []struct {
		sender string
		g      leasehold.Generation
		kind   leasehold.Kind
		want   fence.Receiver
	}{
		{"a", 5, leasehold.Other, fence.Receiver{"a": 5}},
		{"a", 5, leasehold.Other, fence.Receiver{"a": 5}},
		{"a", 4, leasehold.ErrStale, fence.Receiver{"a": 5}},
		{"b", 4, leasehold.Other, fence.Receiver{"a": 5, "b": 4}},
		{"b", 0, leasehold.ErrInvalid, fence.Receiver{"a": 5, "b": 4}},
		{"a", 6, leasehold.Other, fence.Receiver{"a": 6, "b": 4}},
	} {
		before := maps.Clone(r)
		next, err := r.Accept(c.sender, c.g)
		if !maps.Equal(next, c.want) || leasehold.KindOf(err) != c.kind || (err == nil) != (c.kind == leasehold.Other) {
			t.Errorf("%d: %v, %v, want %v", i, next, err, c.want)
		}
		if !maps.Equal(r, before) {
			t.Errorf("%d: %v was changed to %v", i, before, r)
		}
		r = next
	}
	data, err := json.Marshal(r)
	var decoded fence.Receiver
	if err == nil {
		err = json.Unmarshal(data, &decoded)
	}
	if err != nil || !maps.Equal(decoded, r) {
		t.Errorf("%s is decoded as %v, %v", data, decoded, err)
	}
}

// An inbox is a value of the receiving service.
type inbox struct {
	Senders fence.Receiver
	Texts   []string
}

func deliver(ctx context.Context, m *leasemap.Map[inbox], to, sender string, g leasehold.Generation, text string) error {
	_, err := m.Update(ctx, to, func(i *inbox) (err error) {
		i.Senders, err = i.Senders.Accept(sender, g)
		i.Texts = append(i.Texts[:len(i.Texts):len(i.Texts)], text)
		return err
	})
	return err
}

// A Receiver in a leasemap refuses late effects also on the server to which the value has moved.
func TestReceiverMoves(t *testing.T) {
	leaseholdtest.Run(t, leaseholdtest.Config{}, func(t *testing.T, c *leaseholdtest.Cluster) {
		join := func(name string) *leasemap.Map[inbox] {
			n := c.Node(name)
			m, err := leasemap.Join(t.Context(), n.MovingConfig(), leasemap.Config[inbox]{})
			if err != nil {
				t.Fatal(err)
			}
			n.Cleanup(func(ctx context.Context) { _ = m.Close(ctx) })
			c.Settle()
			return m
		}
		x := join("x")
		if err := deliver(t.Context(), x, "bob", "room", 7, "hello"); err != nil {
			t.Fatal(err)
		}
		y := join("y")
		c.Move(leasehold.All, "y")
		if err := deliver(t.Context(), y, "bob", "room", 6, "late"); !errors.Is(err, leasehold.ErrStale) {
			t.Errorf("a late effect: %v", err)
		}
		if err := deliver(t.Context(), y, "bob", "room", 8, "bye"); err != nil {
			t.Error(err)
		}
		if got, _, err := y.Get("bob"); err != nil || fmt.Sprint(got.Texts) != "[hello bye]" {
			t.Errorf("%v, %v", got.Texts, err)
		}
	})
}

// The servers of rooms send messages to those of inboxes, with the generation of their lease on the room.
func ExampleReceiver() {
	type inbox struct {
		Senders fence.Receiver
		Unread  int
	}
	var inboxes *leasemap.Map[inbox] // from leasemap.Join
	receive := func(ctx context.Context, user, room string, generation leasehold.Generation) error {
		_, err := inboxes.Update(ctx, user, func(i *inbox) (err error) {
			i.Senders, err = i.Senders.Accept("rooms/"+room, generation)
			i.Unread++
			return err // nothing is changed if it is stale
		})
		return err
	}
	_ = receive
}
