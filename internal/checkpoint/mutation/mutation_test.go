package mutation

import "testing"

// TestMutationsApply keeps the faults in step with the core. That each is caught is for `make mutate` to say.
func TestMutationsApply(t *testing.T) {
	mutations, err := Load("..")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutations) < 30 {
		t.Errorf("only %d", len(mutations))
	}
}
