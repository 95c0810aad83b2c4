package watch

import (
	"maps"
	"testing"
)

func TestMailboxKeepsTheLatest(t *testing.T) {
	m := NewMailbox[int]()
	for i := range 1000 {
		m.Put(i) // nobody reads: it must not block
	}
	if got := <-m.slot; got != 999 {
		t.Fatalf("got %d, want the last", got)
	}
}

func TestMergingMailboxLosesNothing(t *testing.T) {
	m := NewMergingMailbox(union[int])
	for i := range 10 {
		m.Put(map[int]bool{i: true})
	}
	if got := <-m.slot; len(got) != 10 {
		t.Fatalf("got %v, want ten", maps.Keys(got))
	}
}
