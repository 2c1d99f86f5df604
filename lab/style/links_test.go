package style

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linkPattern    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	codePattern    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
	anchorDropped  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks checks every relative link of every Markdown file, with its heading.
func TestLinks(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range markdown(t, root) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range linkPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			checked++
			if problem := broken(file, link[1]); problem != "" {
				t.Errorf("%s: link %s: %s", file[len(root)+1:], link[1], problem)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links found", checked)
	}
}

// TestReadmeIsShort limits the length of the README.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(text))); n > 900 {
		t.Errorf("README.md has %d words, want at most 900: move the rest to docs/guide.md", n)
	}
}

func TestBroken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(file, []byte("# Rolling restarts, `now`\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, want := range map[string]bool{
		"a.md": false, "#rolling-restarts-now": false, "a.md#rolling-restarts-now": false,
		"b.md": true, "#restarts": true, "a.md#restarts": true,
	} {
		if got := broken(file, link) != ""; got != want {
			t.Errorf("broken(%q) = %t, want %t", link, got, want)
		}
	}
}

// markdown returns all Markdown files below root.
func markdown(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "testdata"):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// broken returns the problem of a link in a file; "" if there is none.
func broken(file, link string) string {
	target, anchor, _ := strings.Cut(link, "#")
	path := file
	if target != "" {
		path = filepath.Join(filepath.Dir(file), target)
	}
	if _, err := os.Stat(path); err != nil {
		return "no such file"
	}
	if anchor == "" || filepath.Ext(path) != ".md" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	for _, heading := range headingPattern.FindAllStringSubmatch(string(text), -1) {
		if anchorOf(heading[1]) == anchor {
			return ""
		}
	}
	return "no such heading"
}

// anchorOf returns GitHub's anchor of a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(anchorDropped.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
