package certificates

import (
	"crypto/x509"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/machine-iac/machine-iac-operator/test/builder"
)

func TestAClientCertificateIsForANewMachine(t *testing.T) {
	created := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	machine := builder.Machine(builder.Stored(created), builder.WithProviderID("test:///a"))
	own := func(*machinev1beta1.Machine) string { return "system:bootstrap:abcdef" }
	for name, tc := range map[string]struct {
		after time.Duration
		user  func(*machinev1beta1.Machine) string
		late  bool
	}{
		"at once":      {0, nil, false},
		"in two hours": {2 * time.Hour, nil, false},
		"after that":   {2*time.Hour + time.Second, nil, true},
		"after that, with the Machine's own token": {2*time.Hour + time.Second, own, false},
		"before its day": {-time.Second, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Controller{reader: fake.NewClientBuilder().Build(), bootstrapUser: tc.user}
			csr := &certificatesv1.CertificateSigningRequest{}
			csr.CreationTimestamp = metav1.NewTime(created.Add(tc.after))
			csr.Spec.Groups, csr.Spec.Username = []string{bootstrappers}, own(machine)
			csr.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
			refused, err := c.checkClient(t.Context(), &request{csr, &x509.CertificateRequest{}, machine.Name}, machine)
			if err != nil || (refused != nil) != tc.late || refused != nil && refused.reason != reasonLate {
				t.Errorf("refused: %+v, %v; want it late: %t", refused, err, tc.late)
			}
		})
	}
}
