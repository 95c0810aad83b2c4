package checkpoint

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/bits"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/state-machine.md anew")

// dimension is one field of Situation, with a word for each of its values.
type dimension struct {
	field  string
	title  string
	values []string
}

// dimensions are in the order in which the tables ask.
var dimensions = []dimension{
	{"Runtime", "runtime", []string{"unknown", "known"}},
	{"Running", "of the pod runs", []string{"nothing", "sandbox", "created", "up", "ready"}},
	{"API", "API server", []string{"quiet", "away", "relists", "serves"}},
	{"Kubelet", "kubelet", []string{"quiet", "no API yet", "in sync", "can't say"}},
	{"Parent", "pod", []string{"gone", "bound", "over", "evicted", "managed"}},
	{"Trouble", "trouble", []string{"none", "not begun", "stuck", "checkpoint stuck"}},
	{"Handover", "hand-over", []string{"ready", "shared", "created", "exclusive"}},
	{"Port", "port", []string{"free", "taken"}},
	{"Admission", "admission", []string{"open", "blocked"}},
}

// TestStateMachineIsDocumented holds docs/state-machine.md to the tables: every cell of them is in it.
func TestStateMachineIsDocumented(t *testing.T) {
	p := DefaultPolicy()
	activation, cells := render(func(s Situation) row { return s.activation(p) }, "activate")
	withdrawal, more := render(func(s Situation) row { return s.withdrawal(p) }, "withdraw")
	got := strings.NewReplacer("{activation}", activation, "{withdrawal}", withdrawal, "{cells}", fmt.Sprint(cells+more), "{words}", words(t), "{reasons}", reasonTable(t)).Replace(template(t))
	path := filepath.Join("..", "..", "docs", "state-machine.md")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != got {
		t.Fatalf("%s is not what the code says (%v): go test ./internal/checkpoint -run StateMachine -update", path, err)
	}
}

func template(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join("testdata", "state-machine.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDimensionsNameEveryValue fails when a Situation has a field or a value that the documentation has no word for.
func TestDimensionsNameEveryValue(t *testing.T) {
	if n := reflect.TypeFor[Situation]().NumField(); n != len(dimensions) {
		t.Errorf("Situation has %d fields, documented are %d", n, len(dimensions))
	}
	for field, n := range map[string]int{
		"Runtime": int(RuntimeKnown), "Running": int(RunsReady), "API": int(APIServes), "Kubelet": int(KubeletCantSay),
		"Parent": int(ParentManaged), "Trouble": int(CheckpointStuck), "Handover": int(HandoverExclusive), "Port": int(PortTaken), "Admission": int(AdmissionBlocked),
	} {
		i := slices.IndexFunc(dimensions, func(d dimension) bool { return d.field == field })
		if i < 0 || len(dimensions[i].values) != n+1 {
			t.Errorf("%s has %d values", field, n+1)
		}
	}
}

// block is a part of a table: for each dimension a set of values, as bits.
type block [9]uint8

// render writes a table. Each cell of decide lies in a row, and all rows in which it lies say the same of it.
func render(decide func(Situation) row, verb string) (table string, cells int) {
	verdicts := make(map[block]string)
	each(full(), func(cell block) { verdicts[cell] = verdict(decide(situation(cell)), verb) })
	var b strings.Builder
	for _, d := range dimensions {
		b.WriteString("| " + d.title + " ")
	}
	b.WriteString("| then | because of |\n" + strings.Repeat("|---", len(dimensions)+2) + "|\n")
	covered := make(map[block]bool)
	each(full(), func(cell block) {
		if covered[cell] {
			return
		}
		rows := grow(cell, verdicts)
		each(rows, func(c block) { covered[c] = true })
		b.WriteString(rows.words() + verdicts[cell] + "\n")
	})
	return b.String(), len(verdicts)
}

// grow adds values to a cell as long as all that it holds has one verdict.
func grow(cell block, verdicts map[block]string) block {
	for i := range dimensions {
		for value := range dimensions[i].values {
			larger := cell
			larger[i] |= 1 << value
			same := true
			each(larger, func(c block) { same = same && verdicts[c] == verdicts[lowest(cell)] })
			if same {
				cell = larger
			}
		}
	}
	return cell
}

func full() (all block) {
	for i, d := range dimensions {
		all[i] = 1<<len(d.values) - 1
	}
	return all
}

// lowest is the first cell of a block.
func lowest(b block) (cell block) {
	for i, set := range b {
		cell[i] = set & -set
	}
	return cell
}

// each calls do with every cell of a block.
func each(b block, do func(block)) {
	cell := lowest(b)
	for {
		do(cell)
		i := len(b) - 1
		for ; i >= 0; i-- {
			if above := b[i] &^ (cell[i]<<1 - 1); above != 0 {
				cell[i] = above & -above
				break
			}
			cell[i] = b[i] & -b[i]
		}
		if i < 0 {
			return
		}
	}
}

func situation(cell block) (s Situation) {
	for i, d := range dimensions {
		reflect.ValueOf(&s).Elem().FieldByName(d.field).SetUint(uint64(bits.TrailingZeros8(cell[i])))
	}
	return s
}

// words are the fields of a row; empty where it is for all values.
func (b block) words() string {
	row := "|"
	for i, d := range dimensions {
		var words []string
		for value, word := range d.values {
			if b[i]&(1<<value) != 0 {
				words = append(words, word)
			}
		}
		if len(words) == len(d.values) {
			words = nil
		}
		row += " " + strings.Join(words, ", ") + " |"
	}
	return row
}

func verdict(r row, verb string) string {
	then := "hold"
	switch {
	case r.act && r.quiet:
		then = fmt.Sprintf("**%s** after %v of quiet", verb, r.after)
	case r.act && r.after > 0:
		then = fmt.Sprintf("**%s** after %v", verb, r.after)
	case r.act:
		then = "**" + verb + "**"
	}
	return " " + then + " | `" + string(r.reason) + "` |"
}

// words lists what each word of the tables means, from the comments of the values.
func words(t *testing.T) string {
	var b strings.Builder
	for _, d := range dimensions {
		field, _ := reflect.TypeFor[Situation]().FieldByName(d.field)
		fmt.Fprintf(&b, "\n**%s**\n\n", d.title)
		for i, comment := range commentsOf(t, field.Type.Name()) {
			fmt.Fprintf(&b, "- %s", d.values[i])
			if comment != "" {
				b.WriteString(": " + comment)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// reasons lists the reasons with their meaning.
func reasonTable(t *testing.T) string {
	var b strings.Builder
	for _, spec := range constants(t, "Reason") {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`), strings.TrimSpace(spec.Comment.Text()))
	}
	return b.String()
}

func commentsOf(t *testing.T, enum string) (comments []string) {
	for _, spec := range constants(t, enum) {
		comments = append(comments, strings.TrimSpace(spec.Comment.Text()))
	}
	return comments
}

// constants are those of a type, in their order.
func constants(t *testing.T, of string) (specs []*ast.ValueSpec) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			current := ""
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if id, ok := value.Type.(*ast.Ident); ok {
					current = id.Name
				}
				if current == of {
					specs = append(specs, value)
				}
			}
		}
	}
	return specs
}
