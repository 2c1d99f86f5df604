// Lines counts the lines of Go that each service of Live Mesh takes, and prints them beside
// those that the PRS paper gives for its own, in table 1.
//
//	go run ./lines                    # in examples/livemesh
//	go run ./lines -docs README.md    # writes the table between the marks in there, too
//
// A line counts if there is code on it: blank lines, lines of comments and tests do not.
// What services share is left out of theirs, as it is in the paper, which does not say
// whether its numbers include comments.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	dir := flag.String("dir", ".", "where the services are")
	docs := flag.String("docs", "", "a document whose table is to be brought up to date")
	flag.Parse()
	if err := run(*dir, *docs); err != nil {
		fmt.Fprintf(os.Stderr, "lines: %v\n", err)
		os.Exit(1)
	}
}

func run(dir, docs string) error {
	table, err := tableOf(dir)
	if err != nil {
		return err
	}
	fmt.Print(table)
	if docs == "" {
		return nil
	}
	text, err := os.ReadFile(docs)
	if err != nil {
		return err
	}
	next, err := replaced(string(text), table)
	if err != nil {
		return fmt.Errorf("%s: %w", docs, err)
	}
	return os.WriteFile(docs, []byte(next), 0o644) //nolint:gosec // a document, for everybody
}
