package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	nodeUserPrefix = "system:node:"
	nodesGroup     = "system:nodes"
	subjectParts   = 2 // common name and organization
)

// subjectAltName is the only extension that kubelets request.
var subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// refusal says why a request is not approved. It is no error: others may approve it.
type refusal struct {
	// reason is a label of a metric.
	reason, message string
}

func refuse(reason, format string, values ...any) *refusal {
	return &refusal{reason: reason, message: fmt.Sprintf(format, values...)}
}

// request is a request for a certificate of a kubelet.
type request struct {
	*certificatesv1.CertificateSigningRequest

	content *x509.CertificateRequest
	// node is the name of the Node that it is for.
	node string
}

// read reads a request and checks what both kinds of certificates have in common.
func read(csr *certificatesv1.CertificateSigningRequest) (*request, *refusal) {
	block, rest := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, refuse(reasonMalformed, "it is not one PEM block CERTIFICATE REQUEST")
	}
	content, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = content.CheckSignature()
	}
	if err != nil {
		return nil, refuse(reasonMalformed, "it cannot be read: %s", err)
	}
	node, isNode := strings.CutPrefix(content.Subject.CommonName, nodeUserPrefix)
	if !isNode || node == "" || !slices.Equal(content.Subject.Organization, []string{nodesGroup}) ||
		len(content.Subject.Names) != subjectParts {
		return nil, refuse(reasonSubject, "its subject %q is not that of a kubelet", content.Subject)
	}
	if len(content.EmailAddresses) > 0 || len(content.URIs) > 0 {
		return nil, refuse(reasonNames, "it has mail addresses or URIs")
	}
	for _, extension := range content.Extensions {
		if !extension.Id.Equal(subjectAltName) {
			return nil, refuse(reasonNames, "it asks for the extension %s", extension.Id)
		}
	}
	return &request{CertificateSigningRequest: csr, content: content, node: node}, nil
}

func (r *request) isClient() bool {
	return r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName
}

// sameKey reports whether two requests are for the same key. A kubelet keeps its key when it repeats
// a request.
func sameKey(r *request, other *certificatesv1.CertificateSigningRequest) bool {
	read, refused := read(other)
	return refused == nil && bytes.Equal(read.content.RawSubjectPublicKeyInfo, r.content.RawSubjectPublicKeyInfo)
}

// hasUsages reports whether a request is for a usage alone. Kubelets with an elliptic key ask for no
// key encipherment.
func (r *request) hasUsages(usage certificatesv1.KeyUsage) bool {
	wanted := map[certificatesv1.KeyUsage]bool{certificatesv1.UsageDigitalSignature: true, usage: true}
	for _, one := range r.Spec.Usages {
		if !wanted[one] && one != certificatesv1.UsageKeyEncipherment {
			return false
		}
		delete(wanted, one)
	}
	return len(wanted) == 0
}

// pending reports whether a request waits for an approval.
func pending(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) == 0
}

// approved reports whether a request was approved, and did not fail later.
func approved(csr *certificatesv1.CertificateSigningRequest) bool {
	is := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(csr.Status.Conditions,
			func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
	}
	return is(certificatesv1.CertificateApproved) && !is(certificatesv1.CertificateFailed)
}
