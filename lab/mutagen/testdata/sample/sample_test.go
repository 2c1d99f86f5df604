package sample

import "testing"

func TestStack(t *testing.T) {
	var s Stack[int]
	s.Push(1, 2)
	if len(s.items) != 2 || s.Limit(1, "") != 3 {
		t.Error(s)
	}
}

func TestClamp(t *testing.T) {
	if Clamp(5, 1, 3) != 3 || Clamp(0, 1, 3) != 1 || Clamp(2, 1, 3) != 2 {
		t.Error("wrong")
	}
}

func TestDivide(t *testing.T) {
	if n, err := Divide(6, 3); n != 2 || err != nil {
		t.Error(n, err)
	}
	if _, err := Divide(6, 0); err == nil {
		t.Error("no error")
	}
}

func TestForever(t *testing.T) {
	if Forever(3) != 0 {
		t.Error("wrong")
	}
}

func TestReceive(t *testing.T) {
	a, b := make(chan int, 1), make(chan int, 1)
	if receive(a, b) {
		t.Error("nothing is ready")
	}
	a <- 1
	if !receive(a, b) {
		t.Error("a is ready")
	}
	b <- 5
	if !receive(a, b) {
		t.Error("b is ready")
	}
}

func TestFails(t *testing.T) { t.Error("without any mutant") }
