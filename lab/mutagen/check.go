package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A pkg is a package with its mutants.
type pkg struct {
	dir, path string // relative to the root, and for import
	name      string
	files     []*source
	functions []*function
	exports   map[string]string // files with the types of imported packages
}

// load parses a package.
func load(ctx context.Context, dir string) (*pkg, error) {
	p := &pkg{dir: dir, exports: make(map[string]string)}
	files, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		s, err := parse(filepath.Join(dir, name), string(text))
		if err != nil {
			return nil, err
		}
		p.name = s.ast.Name.Name
		p.files = append(p.files, s)
		p.functions = append(p.functions, s.functions()...)
	}
	return p, nil
}

func parse(path, text string) (*source, error) {
	s := &source{path: path, fset: token.NewFileSet(), text: text}
	var err error
	s.ast, err = parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution)
	return s, err
}

// list returns the files of the package, and finds the types of imported packages, including those of the selector.
func (p *pkg) list(ctx context.Context) (files []string, err error) {
	out, err := output(exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles", "./"+p.dir, "os", "strconv", "sync"))
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var listed struct {
			ImportPath, Export string
			GoFiles            []string
		}
		switch err := decoder.Decode(&listed); {
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, err
		}
		p.exports[listed.ImportPath] = listed.Export
		if strings.HasSuffix(listed.ImportPath, "/"+p.dir) {
			p.path, files = listed.ImportPath, listed.GoFiles
		}
	}
}

func (p *pkg) mutants() (all []*mutant) {
	for _, f := range p.functions {
		for _, m := range f.mutants {
			if m.number > 0 {
				all = append(all, m)
			}
		}
	}
	return all
}

// instrumented returns the files of the package with the numbered mutants, and the selector.
func (p *pkg) instrumented() (texts map[string]string, spans map[string][]span) {
	texts, spans = make(map[string]string), make(map[string][]span)
	for _, s := range p.files {
		of := slices.DeleteFunc(slices.Clone(p.functions), func(f *function) bool { return f.file != s })
		texts[s.path], spans[s.path] = instrument(s, of)
	}
	texts[filepath.Join(p.dir, "mutant_selector.go")] = fmt.Sprintf(selector, p.name)
	return texts, spans
}

// check numbers the mutants that compile.
func (p *pkg) check() error {
	n := 0
	for _, f := range p.functions {
		for _, m := range f.mutants {
			n++
			m.number = n
		}
	}
	texts, spans := p.instrumented()
	fset := token.NewFileSet()
	files := make([]*ast.File, 0, len(texts))
	for path, text := range texts {
		file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	var unexpected error
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", p.export), Error: func(err error) {
		var e types.Error
		errors.As(err, &e)
		at := fset.Position(e.Pos)
		of := spans[at.Filename]
		i := slices.IndexFunc(of, func(s span) bool { return s.from <= at.Offset && at.Offset < s.to })
		if i < 0 {
			unexpected = err
			return
		}
		of[i].mutant.number = 0
	}}
	_, _ = config.Check(p.path, fset, files, nil) // errors are collected
	return unexpected
}

func (p *pkg) export(path string) (io.ReadCloser, error) { return os.Open(p.exports[path]) }

// output runs a command. The error of a failed command has what it printed.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%v: %w\n%s%s", cmd, err, out, stderr.Bytes())
	}
	return out, nil
}
