package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

func main() {
	var c campaign
	flag.StringVar(&c.dir, "package", "", "run the mutants of this `directory` only")
	flag.StringVar(&c.base, "changed", "", "run only mutants of functions that differ from this `commit`; fail if one survives that survivors.txt does not list")
	flag.BoolVar(&c.again, "again", false, "run survivors again, and nothing else")
	flag.BoolVar(&c.page, "page", false, "only write docs/MUTANTS.md and the rates, after a change of survivors.txt")
	flag.BoolVar(&c.list, "list", false, "print the mutants instead of running them")
	flag.Uint64Var(&c.seed, "seed", 1, "order of the mutants")
	limit := flag.Duration("for", 100*time.Hour, "start no mutant after this time")
	flag.Parse()
	c.end = time.Now().Add(*limit)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := c.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutagen:", err)
		os.Exit(1)
	}
}

// A campaign is a run of the command.
type campaign struct {
	dir, base         string
	again, list, page bool
	seed              uint64
	end               time.Time
}

func (c campaign) run(ctx context.Context) error {
	if c.page {
		return publish(nil, nil)
	}
	chosen := slices.Clone(targets)
	if c.base != "" {
		c.shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	}
	if c.dir != "" {
		t, err := findTarget(c.dir)
		if err != nil {
			return err
		}
		chosen = []target{t}
	}
	var failures []error
	for i, t := range chosen {
		one := c
		one.end = time.Now().Add(time.Until(c.end) / time.Duration(len(chosen)-i)) // packages that take less leave time to the rest
		if err := one.runTarget(ctx, t); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", t.dir, err))
		}
	}
	return errors.Join(failures...)
}

// runTarget runs the mutants of a package that have no result yet, until the time is up.
func (c campaign) runTarget(ctx context.Context, t target) error {
	if c.base != "" && exec.CommandContext(ctx, "git", "diff", "--quiet", c.base, "--", t.dir).Run() == nil {
		return nil
	}
	p, err := load(ctx, t.dir)
	if err != nil {
		return err
	}
	r, err := readResults(p)
	if err != nil {
		return err
	}
	if c.base != "" {
		if err := p.keepChanged(ctx, c.base); err != nil {
			return err
		}
	}
	if err := p.check(); err != nil {
		return err
	}
	listed, err := readSurvivors()
	if err != nil {
		return err
	}
	pending := c.pending(p, r, listed[t.dir])
	if c.list {
		for _, m := range p.mutants() {
			fmt.Println(describe(m))
		}
		return nil
	}
	if err := c.runAll(ctx, t, p, r, pending); err != nil {
		return err
	}
	if c.base != "" {
		return unlisted(p, r)
	}
	printSurvivors(p, r, listed[t.dir])
	return publish(p, r)
}

// pending returns the mutants to run, in random order: what fits into the time is a sample. Survivors that are listed
// with a reason run only again.
func (c campaign) pending(p *pkg, r results, reasons map[string]string) []*mutant {
	pending := slices.DeleteFunc(p.mutants(), func(m *mutant) bool {
		if r.of(m) == "" && reasons[m.id()] != "" {
			r.set(m, survived)
		}
		if c.again {
			return !isSurvivor(r.of(m))
		}
		return r.of(m) != ""
	})
	c.shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
	return pending
}

func (c campaign) shuffle(n int, swap func(i, j int)) {
	rand.New(rand.NewPCG(c.seed, 0)).Shuffle(n, swap) //nolint:gosec // reproducible
}

func (c campaign) runAll(ctx context.Context, t target, p *pkg, r results, pending []*mutant) error {
	if len(pending) == 0 || time.Now().After(c.end) {
		return nil
	}
	dir, err := os.MkdirTemp("", "leasehold-mutagen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // in the temporary directory
	texts, _ := p.instrumented()
	net := &net{dir: dir, texts: texts, stages: t.stages}
	const saveEvery = 50
	for i, m := range pending {
		if time.Now().After(c.end) || ctx.Err() != nil {
			break
		}
		result, err := net.run(ctx, m)
		if err != nil {
			return errors.Join(err, r.write(p.dir))
		}
		r.set(m, result)
		if i%saveEvery == saveEvery-1 {
			fmt.Printf("%s: %d of %d mutants\n", p.dir, i+1, len(pending))
			if err := r.write(p.dir); err != nil {
				return err
			}
		}
	}
	return r.write(p.dir)
}

// A net runs the stages of a package. It builds a stage when the first mutant needs it.
type net struct {
	dir    string
	texts  map[string]string
	stages []stage
	built  []*binary
}

// run returns the result of a mutant.
func (n *net) run(ctx context.Context, m *mutant) (result string, err error) {
	result = unreached
	for i, s := range n.stages {
		if i == len(n.built) {
			dir := filepath.Join(n.dir, fmt.Sprint(i))
			if err := os.Mkdir(dir, 0o700); err != nil {
				return "", err
			}
			b, err := s.build(ctx, dir, n.texts)
			if err != nil {
				return "", err
			}
			n.built = append(n.built, b)
		}
		killed, reached, err := n.built[i].kills(ctx, m)
		if err != nil {
			return "", err
		}
		if killed {
			return s.name, nil
		}
		if reached {
			result = survived
		}
	}
	return result, nil
}

func describe(m *mutant) string {
	return fmt.Sprintf("%s:%d: %s", m.function.file.path, m.line, m.id())
}

func printSurvivors(p *pkg, r results, reasons map[string]string) {
	for _, m := range p.mutants() {
		if result := r.of(m); isSurvivor(result) && reasons[m.id()] == "" {
			fmt.Println(describe(m), "-", result)
		}
	}
}

// keepChanged keeps the functions that differ from a commit.
func (p *pkg) keepChanged(ctx context.Context, base string) error {
	if _, err := output(exec.CommandContext(ctx, "git", "rev-parse", "--verify", base+"^{commit}")); err != nil {
		return err
	}
	before := make(map[string]string)
	for _, s := range p.files {
		out, err := exec.CommandContext(ctx, "git", "show", base+":"+s.path).Output()
		if err != nil {
			continue // a new file
		}
		old, err := parse(s.path, string(out))
		if err != nil {
			return err
		}
		for _, f := range old.functions() {
			before[f.name] = f.text()
		}
	}
	p.functions = slices.DeleteFunc(p.functions, func(f *function) bool { return before[f.name] == f.text() })
	return nil
}

// unlisted returns an error with the survivors that survivors.txt does not list, if it has all others of the package.
func unlisted(p *pkg, r results) error {
	s, err := readSurvivors()
	if err != nil {
		return err
	}
	rates, err := readRates()
	if err != nil {
		return err
	}
	var found []error
	for _, m := range p.mutants() {
		if _, listed := s[p.dir][m.id()]; isSurvivor(r.of(m)) && !listed {
			found = append(found, fmt.Errorf("a mutant survives: kill it with a test, or list it in %s: %s", survivorsFile, describe(m)))
		}
	}
	if known := rates[p.dir]; known.Run < known.Mutants || known.Mutants == 0 {
		for _, err := range found {
			fmt.Println(err)
		}
		return nil
	}
	return errors.Join(found...)
}
