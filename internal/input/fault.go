package input

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	strictjson "sigs.k8s.io/json"
)

// explain puts an error of decoding data into object in a person's words: the decoder's own speak of Go structs, and
// those of quantities and times name no field.
func explain(err error, data []byte, object any) error {
	if found := fault(data, reflect.TypeOf(object), ""); found != nil {
		return found
	}
	return oneLine(err)
}

// fault finds the value that keeps data from being decoded into a type, and says where it is and what is wrong with it.
// It shows no value, which may be a Secret's. It is nil if there is no such value.
func fault(data []byte, t reflect.Type, path string) error {
	err := decode(data, reflect.New(t).Interface())
	if err == nil {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	at := func(err error) error {
		if path == "" {
			return err
		}
		return fmt.Errorf("%s: %w", strings.TrimPrefix(path, "."), err)
	}
	if !decodesItself(t) {
		for key, part := range partsOf(data, t) {
			if err := fault(part.data, part.of, path+key); err != nil {
				return err
			}
		}
	}
	if wanted := nameOf(t); wanted != "" {
		return at(fmt.Errorf("%s is wanted, not %s", wanted, describe(data)))
	}
	return at(oneLine(err))
}

// part is a member of an object or array, and the type that it is to be decoded into.
type part struct {
	data []byte
	of   reflect.Type
}

// partsOf yields the parts of data by what they add to the path, in order.
func partsOf(data []byte, t reflect.Type) func(func(string, part) bool) {
	return func(yield func(string, part) bool) {
		var members map[string]json.RawMessage
		var elements []json.RawMessage
		switch t.Kind() {
		case reflect.Struct:
			_ = decode(data, &members) // of what is no object there are none
			for _, field := range reflect.VisibleFields(t) {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if member, ok := members[name]; ok && name != "" && !yield("."+name, part{member, field.Type}) {
					return
				}
			}
		case reflect.Map:
			_ = decode(data, &members)
			for _, key := range slices.Sorted(maps.Keys(members)) {
				if !yield("["+key+"]", part{members[key], t.Elem()}) {
					return
				}
			}
		case reflect.Slice:
			_ = decode(data, &elements)
			for i, element := range elements {
				if !yield(fmt.Sprintf("[%d]", i), part{element, t.Elem()}) {
					return
				}
			}
		}
	}
}

func decodesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// nameOf is what a person calls the values of a type.
func nameOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return "a quantity, such as 500m or 1Gi,"
	case reflect.TypeFor[intstr.IntOrString]():
		return "a number or a name"
	case reflect.TypeFor[metav1.Time]():
		return "a time, such as 2006-01-02T15:04:05Z,"
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "base64 text"
		}
		return "a list"
	case reflect.String:
		return "text, in quotes if it looks like something else,"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d bits", t.Bits())
	default:
		return ""
	}
}

// describe is what a person calls a value that was found.
func describe(data []byte) string {
	var value any
	_ = decode(data, &value)
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "this text"
	case bool:
		return "true or false"
	case nil:
		return "nothing"
	default:
		return "this number"
	}
}

func decode(data []byte, object any) error {
	return strictjson.UnmarshalCaseSensitivePreserveInts(data, object)
}
