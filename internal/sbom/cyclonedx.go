package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"io"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
)

// A document is what CycloneDX calls a bill of materials, as far as a Go binary has one.
type document struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A dependency says what the binary has in it. How modules depend on each other is not in a
// binary.
type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// describe writes what a binary says of itself.
func describe(name string, info *buildinfo.BuildInfo) document {
	main := component{Type: "application", Ref: name, Name: name, Version: info.Main.Version}
	for _, s := range info.Settings {
		main.Properties = append(main.Properties, property{"go:build:" + s.Key, s.Value})
	}
	doc := document{
		Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{main},
		Components: []component{{
			Type: "library", Ref: "pkg:golang/stdlib@" + info.GoVersion, Name: "stdlib",
			Version: info.GoVersion, PURL: "pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go"),
		}},
	}
	for _, m := range linked(info) {
		doc.Components = append(doc.Components, moduleOf(m))
	}
	contains := dependency{Ref: main.Ref}
	for _, c := range doc.Components {
		contains.DependsOn = append(contains.DependsOn, c.Ref)
	}
	doc.Dependencies = []dependency{contains}
	return doc
}

// linked are the modules whose code is in the binary, sorted: those that replace others, and
// not the others.
func linked(info *buildinfo.BuildInfo) []*debug.Module {
	var out []*debug.Module
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *debug.Module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return out
}

func moduleOf(m *debug.Module) component {
	purl := "pkg:golang/" + escape(m.Path) + "@" + escape(m.Version)
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		// That of go.sum: a hash over the hashes of all files, and of no file that could be
		// downloaded, so that it is none of CycloneDX's hashes.
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

// escape escapes what is not allowed within a package URL; slashes are.
func escape(text string) string {
	return strings.ReplaceAll(url.PathEscape(strings.ToLower(text)), "%2F", "/")
}

// writeTable writes the same for people.
func writeTable(out io.Writer, info *buildinfo.BuildInfo) error {
	var text strings.Builder
	modules := linked(info)
	fmt.Fprintf(&text, "%s %s, built with %s, of %d modules besides the standard library\n\n", info.Path, info.Main.Version, info.GoVersion, len(modules))
	for _, m := range modules {
		fmt.Fprintf(&text, "%s\t%s\t%s\n", m.Path, m.Version, m.Sum)
	}
	fmt.Fprintln(&text)
	for _, s := range info.Settings {
		fmt.Fprintf(&text, "%s\t%s\n", s.Key, s.Value)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	return w.Flush()
}
