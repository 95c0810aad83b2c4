package manifest

import (
	"fmt"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	var many strings.Builder
	for i := range 150 {
		fmt.Fprintf(&many, `"a%d":1,`, i)
	}
	for name, test := range map[string]struct {
		data            string
		warns, refuses  string
		fails           bool
		warnings, found int
	}{
		"known":                          {data: `{"kind":"Pod","metadata":{"name":"p"},"spec":{"hostNetwork":true}}`},
		"unknown in the spec":            {data: `{"spec":{"containers":[{"new":1}],"newer":2}}`, refuses: "spec.containers[0].new: this version does not know the field", found: 2},
		"unknown in the metadata":        {data: `{"metadata":{"new":1}}`, warns: "metadata.new: this version does not know the field", warnings: 1},
		"unknown beside the spec":        {data: `{"specification":{}}`, warns: "specification", warnings: 1},
		"unknown in the status":          {data: `{"status":{"new":1}}`},
		"given twice":                    {data: `{"spec":{"hostPID":true,"hostPID":false}}`, refuses: "spec.hostPID: the field is given twice", found: 1},
		"in the wrong case":              {data: `{"spec":{"HostPID":true}}`, refuses: "spec.HostPID", found: 1},
		"too many to see all":            {data: `{"metadata":{` + many.String() + `"x":1},"spec":{"new":1}}`, refuses: "more unknown fields than can be told apart", found: 1, warnings: 100},
		"of the wrong type":              {data: `{"spec":{"hostPID":"yes"}}`, fails: true},
		"no JSON":                        {data: `{`, fails: true},
		"unknown, and of the wrong type": {data: `{"spec":{"new":1,"hostPID":"yes"}}`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, unknown, err := Decode([]byte(test.data))
			if (err != nil) != test.fails {
				t.Errorf("error %v", err)
			}
			if len(unknown.Elsewhere) != test.warnings || !strings.Contains(fmt.Sprint(unknown.Elsewhere), test.warns) {
				t.Errorf("outside of the spec: %v", unknown.Elsewhere)
			}
			if len(unknown.Spec) != test.found || !strings.Contains(fmt.Sprint(unknown.Spec), test.refuses) {
				t.Errorf("in the spec: %v", unknown.Spec)
			}
		})
	}
}
