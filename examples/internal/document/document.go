// Package document compares the code blocks of a Markdown document with the files that they come from, for tests.
package document

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A Block is a fenced code block with the text since the block before.
type Block struct {
	Text     string // before the block
	Language string // after the opening fence; "" for the text after the last block
	Code     string
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// Blocks returns the blocks of a document, which has at most maxWords words.
func Blocks(t *testing.T, path string, maxWords int) (blocks []Block) {
	t.Helper()
	text := read(t, path)
	if n := len(strings.Fields(text)); n > maxWords {
		t.Errorf("%s has %d words, want at most %d", path, n, maxWords)
	}
	end := 0
	for _, at := range fenced.FindAllStringSubmatchIndex(text, -1) {
		blocks = append(blocks, Block{Text: text[end:at[0]], Language: text[at[2]:at[3]], Code: text[at[4]:at[5]]})
		end = at[1]
	}
	return append(blocks, Block{Text: text[end:]})
}

// WantParts checks that each Go block is a part of one of the files, and that there is a block.
func WantParts(t *testing.T, blocks []Block, files ...string) {
	t.Helper()
	var texts []string
	for _, f := range files {
		texts = append(texts, read(t, f))
	}
	found := 0
	for _, b := range blocks {
		if b.Language != "go" {
			continue
		}
		found++
		if !isPart(b.Code, texts) {
			t.Errorf("this block is in none of the files %q:\n%s", files, b.Code)
		}
	}
	if found == 0 {
		t.Error("no Go block")
	}
}

func isPart(code string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(text, code) {
			return true
		}
	}
	return false
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
