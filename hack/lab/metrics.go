package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// MetricsReader is the service account that MetricsToken creates.
const MetricsReader = "metrics-reader"

const metricsReaderManifests = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-reader, namespace: openshift-machine-api}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: machine-api-controllers-metrics-reader}
subjects: [{kind: ServiceAccount, name: metrics-reader, namespace: openshift-machine-api}]
`

// MetricsToken creates a service account that may read the metrics, and returns its token, valid for an hour.
func (l *Lab) MetricsToken(ctx context.Context) (string, error) {
	if err := l.Apply(ctx, metricsReaderManifests); err != nil {
		return "", err
	}
	token, err := l.Kubectl(ctx, "create", "token", MetricsReader)
	return strings.TrimSpace(token), err
}

// Scrape returns the status code and body of the manager's metrics. An empty token makes an anonymous request.
func (m *Manager) Scrape(ctx context.Context, token string) (int, string, error) {
	return Get(ctx, "https://"+m.Metrics+"/metrics", token)
}

// Scrape returns the status code and body of the operator's metrics.
func (o *Operator) Scrape(ctx context.Context, token string) (int, string, error) {
	address, _ := o.metrics.Load().(string)
	return Get(ctx, "https://"+address+"/metrics", token)
}

// Get returns the status code and body of a URL. An empty token makes an anonymous request.
func Get(ctx context.Context, url, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is self-signed at each start; the port is on loopback.
	asking := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	response, err := asking.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading %s: %w", url, err)
	}
	return response.StatusCode, string(text), nil
}

// Sum adds up the samples of a series that have the given labels, each written as name="value".
func Sum(metrics, series string, labels ...string) float64 {
	var sum float64
	lines := bufio.NewScanner(strings.NewReader(metrics))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if base, _, _ := strings.Cut(name, "{"); !ok || base != series || slices.ContainsFunc(labels, func(label string) bool {
			return !strings.Contains(name, label)
		}) {
			continue
		}
		if sample, err := strconv.ParseFloat(value, 64); err == nil {
			sum += sample
		}
	}
	return sum
}
