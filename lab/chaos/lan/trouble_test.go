package lan

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestTroublesAddUp(t *testing.T) {
	got := Trouble{Loss: 0.5, Delay: 1, Jitter: 2, Rate: 10}.and(Trouble{Loss: 0.5, Delay: 3, Jitter: 4, Duplicate: 0.1, Rate: 5})
	if want := (Trouble{Loss: 0.75, Delay: 4, Jitter: 6, Duplicate: 0.1, Rate: 5}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (Trouble{Rate: 7}).and(Trouble{Cut: true}); got != (Trouble{Cut: true, Rate: 7}) {
		t.Errorf("got %+v", got)
	}
}

func TestFates(t *testing.T) {
	const draws = 10_000
	random := rand.New(rand.NewPCG(1, 1))
	count := func(trouble Trouble, backlog time.Duration, yes func(fate) bool) (n int) {
		for range draws {
			if yes(trouble.draw(random, backlog)) {
				n++
			}
		}
		return n
	}
	lost := func(f fate) bool { return len(f) == 0 }
	for _, test := range []struct {
		name        string
		trouble     Trouble
		backlog     time.Duration
		yes         func(fate) bool
		least, most int
	}{
		{"fine", Trouble{}, 0, func(f fate) bool { return len(f) == 1 && f[0] == 0 }, draws, draws},
		{"cut", Trouble{Cut: true}, 0, lost, draws, draws},
		{"loss", Trouble{Loss: 0.3}, 0, lost, 2700, 3300},
		{"too much", Trouble{Rate: 1}, maxBacklog + 1, lost, draws, draws},
		{"much", Trouble{Rate: 1}, maxBacklog, func(f fate) bool { return f[0] == maxBacklog }, draws, draws},
		{"twice", Trouble{Duplicate: 0.2, Delay: 3}, 0, func(f fate) bool { return len(f) == 2 && f[1] == 3 }, 1700, 2300},
		{"late", Trouble{Delay: 5, Jitter: 10}, 0, func(f fate) bool { return f[0] >= 5 && f[0] < 15 }, draws, draws},
	} {
		if n := count(test.trouble, test.backlog, test.yes); n < test.least || n > test.most {
			t.Errorf("%s: %d of %d, want %d to %d", test.name, n, draws, test.least, test.most)
		}
	}
	if got := (Trouble{Rate: 1000}).takes(100); got != 100*time.Millisecond {
		t.Errorf("100 bytes at 1000 a second take %v", got)
	}
}

func TestDestination(t *testing.T) {
	packet := make([]byte, leastPacket)
	packet[0] = 0x45
	copy(packet[addrAt:], []byte{10, 77, 0, 9})
	if addr, ok := destination(packet); !ok || addr.String() != "10.77.0.9" {
		t.Errorf("got %v, %t", addr, ok)
	}
	for _, bad := range [][]byte{nil, packet[:leastPacket-1], append([]byte{0x60}, packet[1:]...)} {
		if _, ok := destination(bad); ok {
			t.Errorf("%x has a destination", bad)
		}
	}
}
