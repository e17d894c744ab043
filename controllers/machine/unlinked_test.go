package machine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestWhyAMachineHasNoNode(t *testing.T) {
	machine := builder.Machine(builder.WithProviderID("aws:///a/i-1"), builder.WithInternalIPs("10.0.0.1"))
	node := func(id string, ips ...string) corev1.Node {
		return *builder.Node(func(n *corev1.Node) { n.Name = "n" }, builder.WithNodeProviderID(id), builder.WithNodeInternalIPs(ips...))
	}
	for name, tc := range map[string]struct {
		node   corev1.Node
		reason string
		want   string
	}{
		"another providerID":            {node("other://n", "10.0.0.1"), providerIDDiffers, `Node n has the Machine's InternalIP 10.0.0.1, but providerID "other://n"`},
		"the address is its second":     {node("other://n", "10.9.9.9", "10.0.0.1"), nodeMissing, `No Node has providerID "aws:///a/i-1" or InternalIP "10.0.0.1". The instance has existed since 2026-`},
		"another address":               {node("other://n", "10.0.0.2"), nodeMissing, "kubectl get csr"},
		"its providerID, linked soon":   {node("aws:///a/i-1", "10.0.0.1"), "", ""},
		"no providerID, not yet linked": {node("", "10.0.0.1"), nodeMissing, "No Node"},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := whyUnlinked(machine, []corev1.Node{tc.node}, now)
			if reason != tc.reason || !strings.Contains(message, tc.want) {
				t.Errorf("got %s: %s; want %s: %s", reason, message, tc.reason, tc.want)
			}
		})
	}
}
