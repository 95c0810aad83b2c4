// Package mutation reads the faults that internal/checkpoint/mutate puts into the core.
package mutation

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutation is one small fault.
type Mutation struct {
	Name    string
	File    string // of the core
	Mutated []byte // its content with the fault
}

// Load reads the mutations of the core in dir. What each replaces must be there, once.
func Load(dir string) (mutations []Mutation, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "testdata", "mutations.txt"))
	if err != nil {
		return nil, err
	}
	for _, block := range strings.Split(string(data), "\n--- ")[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		file, rest, _ := strings.Cut(rest, "\n")
		from, to, ok := strings.Cut(rest, "\n===\n")
		if !ok {
			return nil, fmt.Errorf("%q is not a file, what is there, ===, and what comes in its place", name)
		}
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		if n := bytes.Count(content, []byte(from)); n != 1 {
			return nil, fmt.Errorf("%q: what it replaces is %d times in %s", name, n, file)
		}
		mutated := bytes.Replace(content, []byte(from), []byte(strings.TrimRight(to, "\n")), 1)
		mutations = append(mutations, Mutation{name, file, mutated})
	}
	return mutations, nil
}
