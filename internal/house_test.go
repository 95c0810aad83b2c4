// Package internal_test holds the source code to the rules of the house that no linter knows.
package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const maxLines = 250 // of a file that is no test

// source is a file of the module that is no test.
type source struct {
	path  string
	lines int
	*ast.File
}

func sources(t *testing.T) (files []source, positions *token.FileSet) {
	t.Helper()
	positions = token.NewFileSet()
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := parser.ParseFile(positions, path, data, parser.ParseComments)
			files = append(files, source{path, bytes.Count(data, []byte("\n")), file})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 50 {
		t.Fatalf("only %d files were found", len(files))
	}
	return files, positions
}

func TestEveryPackageHasOneComment(t *testing.T) {
	files, _ := sources(t)
	comments := make(map[string][]string)
	for _, file := range files {
		dir := filepath.Dir(file.path)
		if _, ok := comments[dir]; !ok {
			comments[dir] = nil
		}
		if file.Doc != nil {
			comments[dir] = append(comments[dir], file.path)
		}
	}
	for dir, in := range comments {
		if len(in) != 1 {
			t.Errorf("%s has %d package comments: %q", dir, len(in), in)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	files, _ := sources(t)
	for _, file := range files {
		if file.lines > maxLines {
			t.Errorf("%s has %d lines, more than %d", file.path, file.lines, maxLines)
		}
	}
}

// TestLogMessagesAreConstant: what varies belongs into fields, so that one message can be looked for.
func TestLogMessagesAreConstant(t *testing.T) {
	files, positions := sources(t)
	messages := 0
	for _, file := range files {
		ast.Inspect(file.File, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !strings.HasPrefix(selector.Sel.Name, "Msg") {
				return true
			}
			messages++
			if selector.Sel.Name != "Msg" || !isFixed(call.Args[0]) {
				t.Errorf("%v: a message that is made up", positions.Position(call.Pos()))
			}
			return true
		})
	}
	if messages < 20 {
		t.Errorf("only %d messages were found", messages)
	}
}

// isFixed says whether an expression is a literal or the name of something, and not put together.
func isFixed(expression ast.Expr) bool {
	switch expression.(type) {
	case *ast.BasicLit, *ast.Ident:
		return true
	default:
		return false
	}
}
