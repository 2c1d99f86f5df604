package drifting

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTheClockIsThere: what is replaced is what the clock's file has. That the result
// builds and drifts is for the storms to see.
func TestTheClockIsThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "clock", "clock.go"))
	if err != nil {
		t.Fatal(err)
	}
	changed, err := replace(string(text))
	if err != nil || changed == string(text) {
		t.Errorf("it stays as it was: %v", err)
	}
	if _, err := replace(changed); err == nil {
		t.Error("it was replaced a second time")
	}
}
