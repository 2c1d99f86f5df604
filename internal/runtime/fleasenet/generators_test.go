package fleasenet

import (
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
)

// Generated values are near the limits of short forms, or arbitrary.

const someSent = flease.Wall(1_800_000_000_123_456_789)

func drawUint64(near ...uint64) *rapid.Generator[uint64] {
	return rapid.OneOf(
		rapid.SampledFrom(append(near, 0, 1, 1<<63, ^uint64(0))),
		rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.SampledFrom(near).Draw(t, "near") + uint64(rapid.Int64Range(-300, 300).Draw(t, "off"))
		}),
		rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64().Draw(t, "any") >> rapid.UintRange(0, 63).Draw(t, "shift")
		}),
	)
}

func drawProcess() *rapid.Generator[flease.Process] {
	return rapid.OneOf(rapid.SampledFrom([]flease.Process{0, 1, 2, 3}), rapid.Map(rapid.Uint32(), func(n uint32) flease.Process { return flease.Process(n) }))
}

func drawBallot(t *rapid.T) flease.Ballot {
	return flease.Ballot{
		Interval: drawUint64(7, 1<<31, 1<<39).Draw(t, "interval"),
		Round:    uint32(drawUint64(1<<8, 1<<16).Draw(t, "round")),
		Process:  drawProcess().Draw(t, "process"),
	}
}

func drawValue(t *rapid.T) flease.Value {
	wall := uint64(someSent)
	return flease.Value{
		Owner:       drawProcess().Draw(t, "owner"),
		Incarnation: drawUint64(11, 22).Draw(t, "incarnation"),
		Serial:      drawUint64(100, 1<<31).Draw(t, "serial"),
		Fence:       drawUint64(wall/millisecond, wall/millisecond+1<<31).Draw(t, "fence"),
		Until:       flease.Wall(drawUint64(wall, wall+1<<31, wall+1<<39, wall-1<<39).Draw(t, "until")),
		Left:        time.Duration(drawUint64(1<<31, 1<<39).Draw(t, "left")),
		Released:    rapid.Bool().Draw(t, "released"),
	}
}

func drawRef(t *rapid.T) flease.Ref { return flease.Ref(drawUint64(1000, 1<<32-1).Draw(t, "ref")) }

func drawMessage(t *rapid.T) flease.Message {
	m := flease.Message{
		Kind:   flease.Kind(rapid.IntRange(int(flease.KindRead), int(flease.KindInsist)).Draw(t, "kind")),
		To:     drawRef(t),
		From:   drawRef(t),
		Ballot: drawBallot(t),
	}
	if named(m.Kind) {
		m.Name = string(rapid.SliceOfN(rapid.Byte(), 0, rapid.SampledFrom([]int{0, 16, flease.MaxName}).Draw(t, "most")).Draw(t, "name"))
	}
	if rapid.Bool().Draw(t, "has written") {
		m.Written = drawBallot(t)
	}
	if rapid.Bool().Draw(t, "has value") {
		m.Value = drawValue(t)
	}
	if rapid.Bool().Draw(t, "has fence") {
		m.Fence = drawUint64(m.Value.Fence, uint64(someSent)/millisecond).Draw(t, "message fence")
	}
	return m
}

func drawEnvelope(t *rapid.T) flease.Envelope {
	return flease.Envelope{
		From: 1, Incarnation: 11,
		Waiting: rapid.Bool().Draw(t, "waiting"),
		To:      drawUint64(22).Draw(t, "to"),
		Sent:    flease.Wall(drawUint64(uint64(someSent)).Draw(t, "sent")),
		Echo:    flease.Wall(drawUint64(uint64(someSent)).Draw(t, "echo")),
	}
}
