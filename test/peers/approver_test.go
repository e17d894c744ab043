//go:build peers

package peers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machine-iac/machine-iac-operator/test/vcenter"
)

const (
	// guestDelay is how long after it boots a guest reports its address. Its kubelet is faster.
	guestDelay = 40 * time.Second
	// soon bounds the time from a guest's report to the approval of its Node's serving certificate.
	soon = 60 * time.Second

	// requesters may request certificates, as OpenShift's machine-config-operator has it.
	requesters = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: peers-requesters}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-bootstrapper"}
subjects:
  - {kind: ServiceAccount, namespace: openshift-machine-config-operator, name: node-bootstrapper}
`
)

// bootstrapper is the ServiceAccount whose token a new kubelet has.
var bootstrapper = rest.ImpersonationConfig{
	UserName: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
	Groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated",
	},
}

// approves plays the kubelet of a guest that reports its address late.
func approves(t *testing.T, w *world) {
	must(t, w.vcenter.Delay(t.Context(), guestDelay))
	must(t, w.lab.Apply(t.Context(), requesters))
	kubeconfig := w.lab.Cluster.AdminKubeconfig()
	w.start(t, "cluster-machine-approver", []string{"METRICS_BIND_ADDRESS=127.0.0.1", "METRICS_PORT=" + port(t)},
		"--workload-cluster-kubeconfig="+kubeconfig, "--management-cluster-kubeconfig="+kubeconfig,
		"--api-group-version=machine.openshift.io/v1beta1", "--max-concurrent-reconciles=10",
		"--disable-status-controller", "--leader-elect=false")
	machine := w.boots(t)
	begun := time.Now()
	user := "system:node:" + machine.Name
	subject := pkix.Name{CommonName: user, Organization: []string{"system:nodes"}}
	w.approved(t, w.request(t, "client", bootstrapper, certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.UsageClientAuth, &x509.CertificateRequest{Subject: subject}))

	var node *corev1.Node
	until(t, "the Node has joined", func(ctx context.Context) error {
		err := w.refresh(ctx, machine)
		if err == nil {
			node, err = w.join(ctx, machine, nil)
		}
		return err
	})
	serving := w.request(t, "serving", rest.ImpersonationConfig{
		UserName: user, Groups: []string{"system:nodes", "system:authenticated"},
	}, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth, &x509.CertificateRequest{
		Subject: subject, DNSNames: []string{node.Name},
		IPAddresses: []net.IP{net.ParseIP(node.Status.Addresses[0].Address)},
	})
	until(t, "the Machine has a nodeRef", func(ctx context.Context) error {
		err := w.refresh(ctx, machine)
		if err == nil && machine.Status.NodeRef == nil {
			err = errors.New("it has none")
		}
		return err
	})
	if !slices.Contains(machine.Status.Addresses, node.Status.Addresses[0]) {
		t.Errorf("the Machine has a nodeRef and the addresses %v; want its Node's %v among them",
			machine.Status.Addresses, node.Status.Addresses[0])
	}
	w.approved(t, serving)
	if took := time.Since(begun); took > guestDelay+soon {
		t.Errorf("the serving certificate was approved %s after the boot; want that within %s", took, guestDelay+soon)
	}
}

// boots creates a MachineSet and returns its Machine once the virtual machine runs.
func (w *world) boots(t *testing.T) (machine *machinev1beta1.Machine) {
	t.Helper()
	set := w.vsphereSet(t, 1)
	must(t, w.client.Create(t.Context(), set))
	until(t, "the virtual machine boots", func(ctx context.Context) error {
		machines, err := w.machines(ctx, set.Spec.Selector.MatchLabels)
		if err != nil {
			return err
		}
		if len(machines) != 1 {
			return fmt.Errorf("there are %d Machines", len(machines))
		}
		machine = &machines[0]
		vm, err := w.vcenter.VM(ctx, vcenter.Folder+"/"+machine.Name)
		if err == nil && (vm == nil || vm.PowerState != "poweredOn") {
			err = errors.New("it does not run")
		}
		return err
	})
	return machine
}

func (w *world) refresh(ctx context.Context, object client.Object) error {
	return w.client.Get(ctx, client.ObjectKeyFromObject(object), object)
}

// request requests a certificate as a kubelet does.
func (w *world) request(t *testing.T, name string, as rest.ImpersonationConfig, signer string,
	usage certificatesv1.KeyUsage, template *x509.CertificateRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	must(t, err)
	config := rest.CopyConfig(w.config)
	config.Impersonate = as
	kubelet, err := client.New(config, client.Options{Scheme: w.client.Scheme()})
	must(t, err)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: signer, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}
	must(t, kubelet.Create(t.Context(), request))
	return request
}

// approved waits until a request is approved.
func (w *world) approved(t *testing.T, request *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	until(t, "the "+request.Name+" certificate is approved", func(ctx context.Context) error {
		if err := w.refresh(ctx, request); err != nil {
			return err
		}
		if len(request.Status.Conditions) == 0 || request.Status.Conditions[0].Reason != "NodeCSRApprove" {
			return fmt.Errorf("its conditions are %v", request.Status.Conditions)
		}
		return nil
	})
}
