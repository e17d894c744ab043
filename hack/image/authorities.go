package main

import (
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// authoritiesFile is where Go and other programs look for trusted authorities.
	authoritiesFile = "etc/ssl/certs/ca-certificates.crt"
	// authoritiesModule is the Go module with Mozilla's list.
	authoritiesModule = "golang.org/x/crypto/x509roots/fallback"
)

// authorities returns the certificates in PEM. It omits conditionally trusted ones: the file format has no conditions.
func authorities() string {
	var out strings.Builder
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.String()
}
