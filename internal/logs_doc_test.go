package internal_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// message is a line of the log, as the source writes it.
type message struct {
	text, level string
	fields      []string
}

func (m message) row() string {
	fields := "`" + strings.Join(m.fields, "` `") + "`"
	if len(m.fields) == 0 {
		fields = ""
	}
	return fmt.Sprintf("| %s | %s | %s |", m.text, m.level, fields)
}

// actionFields are those that describe(), of internal/watch, adds.
var actionFields = []string{"action", "lineage", "pod", "uid", "reason"}

// messages are all that the agent can log, by their text.
func messages(t *testing.T) map[string]message {
	t.Helper()
	files, _ := sources(t)
	found := make(map[string]message)
	for _, file := range files {
		// Of a message that is chosen, every candidate is one: what a variable of that name is made of.
		var candidates []string
		ast.Inspect(file.File, func(node ast.Node) bool {
			var from []ast.Expr
			switch n := node.(type) {
			case *ast.AssignStmt:
				if slices.ContainsFunc(n.Lhs, isMeaning) {
					from = n.Rhs
				}
			case *ast.ValueSpec:
				if isMeaning(n.Names[0]) {
					from = n.Values
				}
			}
			for _, value := range from {
				ast.Inspect(value, func(node ast.Node) bool {
					if e, ok := node.(ast.Expr); ok {
						if text, ok := literal(e); ok && strings.Contains(text, " ") {
							candidates = append(candidates, text)
						}
					}
					return true
				})
			}
			return true
		})
		ast.Inspect(file.File, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || selector.Sel.Name != "Msg" {
				return true
			}
			texts := candidates
			if text, ok := literal(call.Args[0]); ok {
				texts = []string{text}
			}
			for _, text := range texts {
				m := found[text]
				m.text = text
				m.read(selector.X)
				found[text] = m
			}
			return true
		})
	}
	return found
}

func isMeaning(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && (name.Name == "meaning" || name.Name == "meanings")
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// read follows a chain of calls from its end, and notes level and fields.
func (m *message) read(chain ast.Expr) {
	for {
		call, ok := chain.(*ast.CallExpr)
		if !ok {
			break
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.SelectorExpr:
			name, chain = f.Sel.Name, f.X
		case *ast.Ident: // describe(event, action)
			name, chain = f.Name, call.Args[0]
		}
		switch name {
		case "Info", "Warn", "Error", "Debug":
			m.levels(strings.ToLower(name))
		case "WithLevel":
			ast.Inspect(call.Args[0], func(node ast.Node) bool {
				if s, ok := node.(*ast.SelectorExpr); ok && strings.HasSuffix(s.Sel.Name, "Level") {
					m.levels(strings.ToLower(strings.TrimSuffix(s.Sel.Name, "Level")))
				}
				return true
			})
		case "describe":
			m.add(actionFields...)
		case "Err":
			m.add("error")
		default:
			if len(call.Args) > 0 {
				if field, ok := literal(call.Args[0]); ok {
					m.add(field)
				}
			}
		}
	}
	if m.level == "" {
		m.level = "varies"
	}
}

func (m *message) levels(level string) {
	if m.level == "" || m.level == "varies" {
		m.level = level
	}
}

func (m *message) add(fields ...string) {
	for _, field := range fields {
		if !slices.Contains(m.fields, field) {
			m.fields = append(m.fields, field)
		}
	}
	slices.Sort(m.fields)
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTheDocumentedMessagesAreTheMessages holds the table in docs/logs.md to the source: text, level and fields.
func TestTheDocumentedMessagesAreTheMessages(t *testing.T) {
	all := messages(t)
	if len(all) < 25 {
		t.Fatalf("only %d messages were found", len(all))
	}
	var want []string
	for _, text := range slices.Sorted(maps.Keys(all)) {
		want = append(want, all[text].row())
	}
	_, after, _ := strings.Cut(readDoc(t, "logs.md"), "| message | level | fields |\n|---|---|---|\n")
	table, _, _ := strings.Cut(after, "\n\n")
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(table), "\n")); diff != "" {
		t.Errorf("the table of docs/logs.md differs (-source +documented); it should be:\n%s\n\n%s", strings.Join(want, "\n"), diff)
	}
}

// TestEveryComplaintIsInTroubleshooting: each warning and error, each event of that kind, and each finding of doctor has a
// heading in docs/troubleshooting.md, and no heading is of nothing.
func TestEveryComplaintIsInTroubleshooting(t *testing.T) {
	var want []string
	for text, m := range messages(t) {
		if m.level == "warn" || m.level == "error" || m.level == "varies" {
			want = append(want, text)
		}
	}
	slices.Sort(want)
	var headings []string
	for _, heading := range regexp.MustCompile("(?m)^### (.*)$").FindAllStringSubmatch(readDoc(t, "troubleshooting.md"), -1) {
		headings = append(headings, heading[1])
	}
	slices.Sort(headings)
	if diff := cmp.Diff(want, headings); diff != "" {
		t.Errorf("warnings and errors differ from the headings of docs/troubleshooting.md (-source +documented):\n%s", diff)
	}
}
