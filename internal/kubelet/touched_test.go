package kubelet

import (
	"fmt"
	"slices"
	"testing"
)

func TestTouchedStaysSmall(t *testing.T) {
	touched := newTouched()
	for i := range 1000 {
		touched.add(fmt.Sprint(i))
	}
	if got := touched.take(); !slices.Equal(got, []string{anySandbox}) {
		t.Errorf("got %v, want any", got)
	}
	touched.add("a")
	touched.add("a")
	if got := touched.take(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %v", got)
	}
	if got := touched.take(); len(got) != 0 {
		t.Errorf("got %v, want nothing twice", got)
	}
}
