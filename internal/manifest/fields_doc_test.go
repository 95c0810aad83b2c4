package manifest

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFieldsDocument renders the decisions as docs/fields.md. -update rewrites it.
func TestFieldsDocument(t *testing.T) {
	const path = "../../docs/fields.md"
	got := fieldsDocument()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what the decisions say (-want +got; -update rewrites it):\n%s", path, diff)
	}
}

func fieldsDocument() string {
	var text strings.Builder
	text.WriteString(`# What becomes of each field of a pod

A checkpoint is a static pod: the kubelet starts it from a file, without an API server. So it can't have what needs one, and
must not have what would stand in the way of its parent when that returns. These tables list each field of the Kubernetes
API that the checkpointer was built with, as the code decides. A field that is not listed is refused, so that nothing is
lost in silence.

- keep: it means the same without an API server
- strip: it means nothing, or harm, without an API server
- rewrite: something else is made of it
- refuse: a pod that sets it can't be checkpointed; an earlier checkpoint of it stays as it is

This file is made of the tables in internal/manifest/fields_*.go: change those and run
` + "`go test ./internal/manifest -run TestFieldsDocument -update`" + `.
`)
	for _, table := range allDecisions {
		if table.title == "" {
			continue
		}
		fmt.Fprintf(&text, "\n## %s\n\n`%s`\n\n| field | decision | why |\n|---|---|---|\n", table.title, reflect.TypeOf(table.of))
		for _, field := range fieldsOf(reflect.TypeOf(table.of)) {
			if field == "" {
				continue
			}
			decided := table.decisions[field]
			why := decided.why
			if decided.remedy != "" {
				why += "; " + decided.remedy
			}
			fmt.Fprintf(&text, "| %s | %s | %s |\n", field, decided.action, why)
		}
	}
	return text.String()
}
