package leasehold_test

import (
	"encoding/binary"
	"math/bits"
)

// xxh64 is the reference implementation: XXH64 with seed 0, written from the specification,
// slow and simple. It shares no code with the library of KeyOf, so that it checks both
// that library and testdata/keyhash.tsv.
func xxh64(b []byte) uint64 {
	const (
		prime1 uint64 = 0x9E3779B185EBCA87
		prime2 uint64 = 0xC2B2AE3D27D4EB4F
		prime3 uint64 = 0x165667B19E3779F9
		prime4 uint64 = 0x85EBCA77C2B2AE63
		prime5 uint64 = 0x27D4EB2F165667C5
	)
	round := func(acc, lane uint64) uint64 {
		return bits.RotateLeft64(acc+lane*prime2, 31) * prime1
	}
	length := uint64(len(b))

	h := prime5
	if len(b) >= 32 {
		lanes := [4]uint64{prime2, prime2, 0, 0}
		lanes[0] += prime1
		lanes[3] -= prime1
		for ; len(b) >= 32; b = b[32:] {
			for i := range lanes {
				lanes[i] = round(lanes[i], binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
		h = 0
		for i, rotation := range []int{1, 7, 12, 18} {
			h += bits.RotateLeft64(lanes[i], rotation)
		}
		for _, lane := range lanes {
			h = (h^round(0, lane))*prime1 + prime4
		}
	}
	h += length

	for ; len(b) >= 8; b = b[8:] {
		h ^= round(0, binary.LittleEndian.Uint64(b))
		h = bits.RotateLeft64(h, 27)*prime1 + prime4
	}
	if len(b) >= 4 {
		h ^= uint64(binary.LittleEndian.Uint32(b)) * prime1
		h = bits.RotateLeft64(h, 23)*prime2 + prime3
		b = b[4:]
	}
	for _, c := range b {
		h ^= uint64(c) * prime5
		h = bits.RotateLeft64(h, 11) * prime1
	}

	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}
