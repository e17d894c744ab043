package main

import (
	"encoding/pem"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// authoritiesFile is where Go and other programs look for the authorities that they trust.
	authoritiesFile = "etc/ssl/certs/ca-certificates.crt"
	// authoritiesModule is the Go module that has them: Mozilla's list.
	authoritiesModule = "golang.org/x/crypto/x509roots/fallback"
)

// authorities returns the certificates in PEM. One that is trusted under a condition only is left out: a file has no place for conditions.
func authorities() string {
	var out strings.Builder
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.String()
}
