package status

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTheDocumentedSchemaIsWhatIsPrinted holds docs/commands/status.md to Report.
func TestTheDocumentedSchemaIsWhatIsPrinted(t *testing.T) {
	doc, err := os.ReadFile("../../docs/commands/status.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		documented = append(documented, row[1])
	}
	if diff := cmp.Diff(fields("", reflect.TypeFor[Report]()), documented); diff != "" {
		t.Errorf("the table differs from what is printed (-printed +documented):\n%s", diff)
	}
}

// fields are the paths of everything in a value's JSON. Objects that can't be null, and items, are named by their fields.
func fields(prefix string, of reflect.Type) (paths []string) {
	for field := range of.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || options != "" {
			return []string{"no name, or left out when empty: " + field.Name}
		}
		path, inner, plain := prefix+name, field.Type, true
		switch inner.Kind() {
		case reflect.Pointer:
			inner = inner.Elem()
		case reflect.Slice:
			if inner = inner.Elem(); inner.Kind() == reflect.Struct {
				paths = append(paths, path)
				path += "[]"
				plain = false
			}
		case reflect.Struct:
			plain = inner == reflect.TypeFor[time.Time]()
		}
		if plain {
			paths = append(paths, path)
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			paths = append(paths, fields(path+".", inner)...)
		}
	}
	return slices.Clip(paths)
}
