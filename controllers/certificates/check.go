package certificates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/controllers/machineapi"
)

const (
	bootstrappers = "system:bootstrappers"
	// window is how long after the Machine its kubelet may ask for a client certificate.
	window = 2 * time.Hour
)

// check returns the Machine that a request is approved for, or why it is not. all is the number of
// pending requests.
func (c *Controller) check(ctx context.Context, csr *certificatesv1.CertificateSigningRequest,
	all int) (types.NamespacedName, *refusal, error) {
	var machine types.NamespacedName
	r, refused := read(csr)
	if refused != nil {
		return machine, refused, nil
	}
	machines := &machinev1beta1.MachineList{}
	if err := c.client.List(ctx, machines, client.UnsafeDisableDeepCopy); err != nil {
		return machine, nil, fmt.Errorf("listing Machines: %w", err)
	}
	if most := len(machines.Items) + unexplained; all > most {
		return machine, refuse(reasonTooMany, "%d requests of kubelets are pending, more than %d", all, most), nil
	}
	checkKind, belongs := c.checkClient, mayBecome
	if !r.isClient() {
		checkKind, belongs = c.checkServing, hasNode
	}
	found := slices.DeleteFunc(machines.Items, func(m machinev1beta1.Machine) bool { return !belongs(&m, r.node) })
	if len(found) != 1 {
		return machine, refuse(reasonMachine, "%d Machines match Node %s; one must", len(found), r.node), nil
	}
	machine = client.ObjectKeyFromObject(&found[0])
	if refused, err := c.checkOthers(ctx, r); refused != nil || err != nil {
		return machine, refused, err
	}
	current := &machinev1beta1.Machine{} // the cache may lag behind its Node
	if err := c.reader.Get(ctx, machine, current); client.IgnoreNotFound(err) != nil {
		return machine, nil, fmt.Errorf("getting the Machine: %w", err)
	}
	if current.UID != found[0].UID || !belongs(current, r.node) {
		return machine, refuse(reasonMachine, "Machine %s has changed", machine), nil
	}
	refused, err := checkKind(ctx, r, current)
	return machine, refused, err
}

// checkOthers compares a request with the others for the same Node. All that are older are in the
// cache, but it may show one as pending that this process has just approved.
func (c *Controller) checkOthers(ctx context.Context, r *request) (*refusal, error) {
	others := &certificatesv1.CertificateSigningRequestList{}
	if err := c.client.List(ctx, others, client.MatchingFields{nodeIndex: r.node}); err != nil {
		return nil, fmt.Errorf("listing the certificate requests for the Node: %w", err)
	}
	rivals := slices.DeleteFunc(others.Items, func(other certificatesv1.CertificateSigningRequest) bool {
		return other.UID == r.UID || !c.rivals(r, &other)
	})
	if len(rivals) >= mostForNode {
		return refuse(reasonTooMany, "%d other requests for Node %s, more than %d", len(rivals), r.node, mostForNode-1), nil
	}
	for i := range rivals {
		other := &rivals[i]
		err := c.reader.Get(ctx, client.ObjectKeyFromObject(other), other)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("getting another certificate request for the Node: %w", err)
		}
		if err == nil && approved(other) && r.isClient() && !sameKey(r, other) {
			return refuse(reasonRepeated, "request %s for Node %s was approved with another key", other.Name, r.node), nil
		}
	}
	return nil, nil
}

// rivals reports whether another request for the same Node counts. Those of strangers, who can get no
// certificate for it, do not.
func (c *Controller) rivals(r *request, other *certificatesv1.CertificateSigningRequest) bool {
	if other.Spec.SignerName != r.Spec.SignerName || !pending(other) && !approved(other) {
		return false
	}
	return other.Spec.Username == r.Spec.Username || r.isClient() && (c.bootstrapUser == nil || approved(other))
}

// mayBecome reports whether a Machine may become a Node of that name.
func mayBecome(machine *machinev1beta1.Machine, node string) bool {
	return machine.DeletionTimestamp == nil && (machine.Name == node ||
		hasAddress(machine, node, corev1.NodeInternalDNS, corev1.NodeHostName))
}

// hasNode reports whether a Machine refers to a Node of that name.
func hasNode(machine *machinev1beta1.Machine, node string) bool {
	return machine.Status.NodeRef != nil && machine.Status.NodeRef.Name == node
}

func hasAddress(machine *machinev1beta1.Machine, address string, kinds ...corev1.NodeAddressType) bool {
	return slices.ContainsFunc(machine.Status.Addresses, func(one corev1.NodeAddress) bool {
		return one.Address == address && slices.Contains(kinds, one.Type)
	})
}

// checkClient checks a request for the certificate that a kubelet registers its Node with.
func (c *Controller) checkClient(ctx context.Context, r *request, machine *machinev1beta1.Machine) (*refusal, error) {
	after := r.CreationTimestamp.Sub(machine.CreationTimestamp.Time)
	switch {
	case !r.hasUsages(certificatesv1.UsageClientAuth):
		return refuse(reasonUsages, "its usages %q are not those of a client", r.Spec.Usages), nil
	case len(r.content.Extensions) > 0:
		return refuse(reasonNames, "a client certificate must not have other names"), nil
	case !slices.Contains(r.Spec.Groups, bootstrappers):
		return refuse(reasonRequester, "the requester is not in the group %s", bootstrappers), nil
	case c.bootstrapUser != nil && r.Spec.Username != c.bootstrapUser(machine):
		return refuse(reasonRequester, "the requester does not use the bootstrap token of Machine %s", machine.Name), nil
	case machine.Status.NodeRef != nil:
		return refuse(reasonMachine, "Machine %s has Node %s", machine.Name, machine.Status.NodeRef.Name), nil
	case machineapi.ProviderID(machine) == "":
		return refuse(reasonMachine, "Machine %s has no instance yet", machine.Name), nil
	case after < 0 || after > window && c.bootstrapUser == nil: // a token expires by itself
		return refuse(reasonLate, "it was made %s after Machine %s; at most %s are allowed", after, machine.Name, window), nil
	}
	err := c.reader.Get(ctx, types.NamespacedName{Name: r.node}, &corev1.Node{})
	if err == nil {
		return refuse(reasonNode, "Node %s exists", r.node), nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("getting the Node: %w", err)
	}
	return nil, nil
}

// checkServing checks a request for the certificate that a kubelet serves with.
func (c *Controller) checkServing(ctx context.Context, r *request, machine *machinev1beta1.Machine) (*refusal, error) {
	names, ips := r.content.DNSNames, r.content.IPAddresses
	switch {
	case !r.hasUsages(certificatesv1.UsageServerAuth):
		return refuse(reasonUsages, "its usages %q are not those of a server", r.Spec.Usages), nil
	case r.Spec.Username != r.content.Subject.CommonName || !slices.Contains(r.Spec.Groups, nodesGroup):
		return refuse(reasonRequester, "the requester is not Node %s", r.node), nil
	case len(names)+len(ips) == 0:
		return refuse(reasonNames, "it has no name and no IP address"), nil
	}
	for _, name := range names {
		if namesService(name) {
			return refuse(reasonNames, "%s is a name of a Service", name), nil
		}
		if !hasAddress(machine, name, corev1.NodeInternalDNS, corev1.NodeExternalDNS, corev1.NodeHostName) {
			return refuse(reasonNames, "%s is no address of Machine %s", name, machine.Name), nil
		}
	}
	for _, ip := range ips {
		if !hasAddress(machine, ip.String(), corev1.NodeInternalIP, corev1.NodeExternalIP) {
			return refuse(reasonNames, "%s is no address of Machine %s", ip, machine.Name), nil
		}
	}
	node := &corev1.Node{}
	if err := c.reader.Get(ctx, types.NamespacedName{Name: r.node}, node); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the Node: %w", err)
	}
	if node.UID == "" || node.UID != machine.Status.NodeRef.UID {
		return refuse(reasonNode, "Machine %s refers to another Node of this name", machine.Name), nil
	}
	return nil, nil
}

// namesService reports whether clients in the cluster may reach a Service by a name, above all the
// API server. Authors of Machines choose names of Machines, which are addresses on some platforms.
func namesService(name string) bool {
	labels := strings.Split(strings.ToLower(name), ".")
	return labels[0] == "localhost" || slices.Contains(labels, "svc") ||
		labels[0] == "kubernetes" && (len(labels) == 1 || labels[1] == "default")
}
