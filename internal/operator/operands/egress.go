package operands

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// egressPolicy is the NetworkPolicy that says what the controllers reach.
const egressPolicy = "machine-iac-controllers-egress"

// dnsPorts are those of DNS servers: 5353 is that of OpenShift's Pods.
var dnsPorts = []int32{53, 5353}

// Destination is what the controllers reach.
type Destination struct {
	Network netip.Prefix
	// Ports are TCP ports; none for all ports of any protocol.
	Ports []int32
}

// ParseDestination reads a network, with ports behind it: "203.0.113.0/24 443,5000".
func ParseDestination(text string) (Destination, error) {
	address, ports, _ := strings.Cut(strings.TrimSpace(text), " ")
	network, err := netip.ParsePrefix(address)
	if err != nil {
		return Destination{},
			fmt.Errorf("%q is no network; write an address with its length, such as 203.0.113.0/24 or 203.0.113.7/32", address)
	}
	if network != network.Masked() {
		return Destination{}, fmt.Errorf("%q has bits behind its length; write %s", address, network.Masked())
	}
	to := Destination{Network: network}
	for port := range strings.SplitSeq(strings.TrimSpace(ports), ",") {
		if port == "" {
			continue
		}
		number, err := strconv.ParseUint(strings.TrimSpace(port), 10, 16)
		if err != nil || number == 0 {
			return Destination{}, fmt.Errorf("invalid port %q: must be between 1 and 65535", port)
		}
		to.Ports = append(to.Ports, int32(number))
	}
	return to, nil
}

// egress limits the controllers' egress to name servers and the destinations. Without destinations,
// the manifest stays unchanged.
func (in Inputs) egress(object *unstructured.Unstructured) error {
	if len(in.Egress) == 0 {
		return nil
	}
	rules := []networkingv1.NetworkPolicyEgressRule{{Ports: policyPorts(dnsPorts, corev1.ProtocolUDP, corev1.ProtocolTCP)}}
	for _, to := range in.Egress {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To:    []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: to.Network.String()}}},
			Ports: policyPorts(to.Ports, corev1.ProtocolTCP),
		})
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&networkingv1.NetworkPolicySpec{Egress: rules})
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(object.Object, spec["egress"], "spec", "egress")
}

func policyPorts(ports []int32, protocols ...corev1.Protocol) []networkingv1.NetworkPolicyPort {
	var all []networkingv1.NetworkPolicyPort
	for _, protocol := range protocols {
		for _, port := range ports {
			number := intstr.FromInt32(port)
			all = append(all, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &number})
		}
	}
	return all
}
