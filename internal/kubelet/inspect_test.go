package kubelet

import (
	"slices"
	"testing"
)

func TestThePluginsAreThoseThatContainerdTells(t *testing.T) {
	const told = `{"PluginDirs":["/opt/cni/bin"],"Networks":[
		{"Config":{"Name":"cni-loopback","Plugins":[{"Network":{"type":"loopback"}}]},"IFName":"lo"},
		{"Config":{"Name":"x","Plugins":[{"Network":{"type":"ptp"}},{"Network":{"type":"portmap"}}]},"IFName":"eth0"}]}`
	if got := pluginsOf(told); !slices.Equal(got, []string{"ptp", "portmap"}) {
		t.Errorf("got %q", got)
	}
	for _, other := range []string{"", "{}", "nothing"} { // CRI-O tells nothing
		if got := pluginsOf(other); got != nil {
			t.Errorf("of %q: %q, want unknown", other, got)
		}
	}
}
