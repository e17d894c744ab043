package moto

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/machine-iac/machine-iac-operator/test/calls"
)

// Front puts TLS, one valid access key and permissions in front of a Server, as AWS's endpoints do. It verifies no
// signatures.
type Front struct {
	// Calls are the valid calls by action.
	Calls   calls.Log
	allowed func(action string) bool
	backend *Server
	server  *httptest.Server
	mutex   sync.Mutex
	key     string
}

// NewFront returns a front. allowed reports whether the access key may call an action, such as ec2:RunInstances; it is
// asked once for each valid call.
func (s *Server) NewFront(key string, allowed func(action string) bool) (*Front, error) {
	target, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	f := &Front{allowed: allowed, backend: s, key: key}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	f.server = httptest.NewTLSServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, proxy) }))
	return f, nil
}

func (f *Front) Close() { f.server.Close() }

// URL returns the endpoint of all services.
func (f *Front) URL() string { return f.server.URL }

// Authority returns the certificate to trust, in PEM.
func (f *Front) Authority() []byte { return encode(f.server.Certificate()) }

func encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// Rotate replaces the access key, and invalidates the old one.
func (f *Front) Rotate(key string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.key = key
}

// signature matches a request's access key and service.
var signature = regexp.MustCompile(`Credential=([^/]+)/[^/]+/[^/]+/([^/]+)/aws4_request`)

func (f *Front) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	named := signature.FindStringSubmatch(r.Header.Get("Authorization"))
	if named == nil {
		refuse(w, http.StatusForbidden, "MissingAuthenticationToken", "Request is missing Authentication Token")
		return
	}
	form, _ := url.ParseQuery(string(body)) // fails for JSON
	action := actionOf(r, named[2], form)
	f.mutex.Lock()
	valid := named[1] == f.key
	f.mutex.Unlock()
	if valid {
		f.Calls.Note(action)
	}
	switch {
	case !valid:
		refuse(w, http.StatusUnauthorized, "AuthFailure",
			"AWS was not able to validate the provided access credentials")
	case !f.allowed(action):
		refuse(w, http.StatusForbidden, "UnauthorizedOperation",
			"You are not authorized to perform this operation: "+action)
	default:
		if action == "ec2:ModifyNetworkInterfaceAttribute" {
			f.regroup(r.Context(), form)
		}
		next.ServeHTTP(w, r)
	}
}

// regroup copies the security groups of a network interface to its instance, as EC2 does and moto does not.
func (f *Front) regroup(ctx context.Context, form url.Values) {
	found, err := f.backend.Do(ctx, "DescribeNetworkInterfaces", "NetworkInterfaceId.1", form.Get("NetworkInterfaceId"))
	if err != nil {
		return
	}
	for _, id := range found.All("instanceId") {
		parameters := []string{"InstanceId", id}
		for name := range form {
			if number, ok := strings.CutPrefix(name, "SecurityGroupId."); ok {
				parameters = append(parameters, "GroupId."+number, form.Get(name))
			}
		}
		// if it fails, a drift check finds the old groups
		_, _ = f.backend.Do(ctx, "ModifyInstanceAttribute", parameters...)
	}
}

// actionOf returns a request's action as policies name it.
func actionOf(r *http.Request, service string, form url.Values) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" { // ResourceGroupsTaggingAPI_20170126.GetResources
		return strings.TrimSuffix(service, "ging") + ":" + target[strings.LastIndex(target, ".")+1:]
	}
	return service + ":" + form.Get("Action")
}

// refuse responds in EC2's format, which clients of the other services understand well enough.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(
		w,
		`<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>front</RequestID></Response>`, code, message)
}
