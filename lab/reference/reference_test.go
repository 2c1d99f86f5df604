package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasehold-dev/leasehold/internal/testkit/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestUpToDate: the files are those that the code generates.
func TestUpToDate(t *testing.T) {
	const root = "../.."
	want, err := documents()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(root, directory, name))
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(string(got), text); diff != "" {
			t.Errorf("%s/%s is out of date (-file +code); run in the root of the repository:\n\n\tgo run ./lab/reference\n\n%s", directory, name, diff)
		}
	}
	files, err := os.ReadDir(filepath.Join(root, directory))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := want[file.Name()]; !ok {
			t.Errorf("%s/%s is not generated: remove it", directory, file.Name())
		}
	}
}
