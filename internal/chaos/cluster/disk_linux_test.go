package cluster

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOccupy: a disk on which others write meanwhile is filled nevertheless.
func TestOccupy(t *testing.T) {
	for _, test := range []struct {
		name   string
		rooms  []int64 // what is free when it is asked for
		others int     // how often somebody takes some of it before it is had
		want   error
		taken  int64
	}{
		{"nobody writes", []int64{50}, 0, nil, 50},
		{"others write", []int64{50, 40, 30}, 2, nil, 30},
		{"others take all of it", []int64{50, 0}, 1, nil, 0},
		{"others write for ever", []int64{50}, 1000, unix.ENOSPC, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked, taken := 0, int64(0)
			err := occupy(func() (int64, error) {
				size := test.rooms[min(asked, len(test.rooms)-1)]
				asked++
				return size, nil
			}, func(size int64) error {
				if asked <= test.others {
					return unix.ENOSPC
				}
				taken = size
				return nil
			})
			if !errors.Is(err, test.want) || taken != test.taken {
				t.Errorf("took %d, %v; want %d, %v", taken, err, test.taken, test.want)
			}
		})
	}
}
