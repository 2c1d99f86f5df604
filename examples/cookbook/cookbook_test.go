// Package cookbook has the recipes of docs/cookbook.md, one package per recipe.
package cookbook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/examples/internal/document"
)

const maxWords = 1500

// TestCookbookShowsTheRecipes: each Go block is a part of a recipe, and each recipe has a section and a block.
func TestCookbookShowsTheRecipes(t *testing.T) {
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recipes: %v", err)
	}
	blocks := document.Blocks(t, "../../docs/cookbook.md", maxWords)
	document.WantParts(t, blocks, files...)
	shown := make(map[string]bool)
	for _, b := range blocks {
		for _, f := range files {
			shown[filepath.Dir(f)] = shown[filepath.Dir(f)] || strings.Contains(b.Text, "(../examples/cookbook/"+filepath.ToSlash(f)+")")
		}
	}
	for recipe, is := range shown {
		if !is {
			t.Errorf("docs/cookbook.md does not link to %s", recipe)
		}
	}
	text, err := os.ReadFile("../../docs/cookbook.md")
	if n := len(shown); err != nil || strings.Count(string(text), "**Lost in a crash:**") != n || strings.Count(string(text), "**Not lost:**") != n {
		t.Errorf("docs/cookbook.md does not state for each of %d recipes the losses in a crash, and the state that survives (%v)", n, err)
	}
}
