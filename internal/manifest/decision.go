package manifest

import (
	"fmt"
	"reflect"
	"strings"
)

// action is what becomes of a field when its pod becomes a static pod.
type action uint8

const (
	undecided action = iota
	keep             // it means the same without an API server
	strip            // it means nothing, or harm, without an API server
	rewrite          // the code named in the reason makes something else of it
	refuse           // a pod that sets it can't be checkpointed
)

func (a action) String() string {
	return [...]string{"undecided", "keep", "strip", "rewrite", "refuse"}[a]
}

// decision is what becomes of one field, and why. Of a refusal, why is the problem that is reported.
type decision struct {
	action action
	why    string
	remedy string // of a refusal: what a person can do
}

// decisions holds the decision about each field of one type, by the name that the field has in JSON. They are what
// apply does, what the documentation lists, and what a test holds against the type, so that no field of a later
// Kubernetes version goes unnoticed.
type decisions map[string]decision

// apply carries out what the decisions can say by themselves: it empties the fields to strip, and reports those that
// are set and to refuse. An undecided field is refused: nothing is lost in silence.
func (d decisions) apply(object any, path string, report func(Finding)) {
	value := reflect.ValueOf(object).Elem()
	for i, field := range fieldsOf(value.Type()) {
		if field == "" || isEmpty(value.Field(i)) {
			continue
		}
		switch decided := d[field]; decided.action {
		case keep, rewrite:
		case strip:
			value.Field(i).SetZero()
		case refuse:
			report(Finding{join(path, field), decided.why, decided.remedy})
		default:
			report(Finding{join(path, field), "this version does not know the field", "update the checkpointer"})
		}
	}
}

// fieldsOf lists a struct type's fields by their names in JSON, with "" for an embedded struct, whose fields have
// decisions of their own.
func fieldsOf(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

func isEmpty(v reflect.Value) bool {
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

func join(path, field string) string { return path + "." + field }

// item is the path of an element that has a name.
func item(path, list, name string) string { return fmt.Sprintf("%s.%s[%s]", path, list, name) }
