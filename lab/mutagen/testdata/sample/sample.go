// Package sample has one of each kind of code that is mutated.
package sample

import "errors"

// A Stack has methods with and without names for the parameters.
type Stack[T comparable] struct{ items []T }

func (s *Stack[T]) Push(items ...T) {
	for _, item := range items {
		s.items = append(s.items, item)
	}
}

func (*Stack[T]) Limit(_ int, _ string) int { return 3 }

func Clamp[N int | float64](x, low, high N) N {
	if x < low {
		return low
	} else if x > high {
		return high
	}
	return x
}

func Divide(a, b int) (result int, err error) {
	if b == 0 {
		return 0, errors.New("division by zero")
	}
	return a / b, nil
}

// Forever does not end if its statement is deleted.
func Forever(n int) int {
	for n > 0 {
		n--
	}
	return n
}

func receive(a, b chan int) (ready bool) {
	select {
	case <-a:
		ready = true
	case v := <-b:
		ready = v > 0
	default:
	}
	return ready
}

func unused() int { return 1 }
