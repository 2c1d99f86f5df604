package main

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Results of mutants that no stage kills. Other results are names of stages.
const (
	survived  = "survived"
	unreached = "unreached" // no stage runs the function
)

func isSurvivor(result string) bool { return result == survived || result == unreached }

// results are the results of a package, by function. They are valid as long as the text of the function is the same.
type results map[string]*functionResults

type functionResults struct {
	Hash    string            `json:"hash"`
	Mutants map[string]string `json:"mutants"` // the result by id
}

const resultsDir = "bin/mutants"

func resultsFile(dir string) string {
	return filepath.Join(resultsDir, strings.ReplaceAll(dir, "/", "_")+".json")
}

// readResults reads the results of the functions of a package that have not changed.
func readResults(p *pkg) (results, error) {
	old := make(results)
	text, err := os.ReadFile(resultsFile(p.dir))
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	current := make(results)
	for _, f := range p.functions {
		h := fnv.New64a()
		_, _ = h.Write([]byte(f.text()))
		hash := strconv.FormatUint(h.Sum64(), 16)
		if r := old[f.name]; r != nil && r.Hash == hash {
			current[f.name] = r
		} else {
			current[f.name] = &functionResults{hash, make(map[string]string)}
		}
	}
	return current, nil
}

func (r results) of(m *mutant) string { return r[m.function.name].Mutants[m.id()] }

func (r results) set(m *mutant, result string) { r[m.function.name].Mutants[m.id()] = result }

func (r results) write(dir string) error {
	if err := os.MkdirAll(resultsDir, 0o750); err != nil {
		return err
	}
	return writeJSON(resultsFile(dir), r)
}

func writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o600)
}
