package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// MetricsReader is the name of the service account that MetricsToken makes.
const MetricsReader = "metrics-reader"

// metricsReaderManifests let that account read the manager's metrics.
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

// MetricsToken makes a service account that may read the metrics, and returns its token, which is good for an hour.
func (l *Lab) MetricsToken(ctx context.Context) (string, error) {
	if err := l.Apply(ctx, metricsReaderManifests); err != nil {
		return "", err
	}
	token, err := l.Kubectl(ctx, "create", "token", MetricsReader)
	return strings.TrimSpace(token), err
}

// Scrape asks the manager for its metrics; an empty token asks as nobody. It returns the status code and the body.
func (m *Manager) Scrape(ctx context.Context, token string) (int, string, error) {
	return scrape(ctx, m.Metrics, token)
}

// Scrape asks the operator for its metrics.
func (o *Operator) Scrape(ctx context.Context, token string) (int, string, error) {
	return scrape(ctx, o.metricsAddress(), token)
}

func scrape(ctx context.Context, address, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0, "", fmt.Errorf("asking for metrics: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate is made anew at each start and known to nobody; the port is on loopback.
	asking := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := asking.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("asking for metrics: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading metrics: %w", err)
	}
	return response.StatusCode, string(text), nil
}

// Sum adds the samples of one series up, over all its labels.
func Sum(metrics, series string) float64 {
	var sum float64
	lines := bufio.NewScanner(strings.NewReader(metrics))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if base, _, _ := strings.Cut(name, "{"); !ok || base != series {
			continue
		}
		if sample, err := strconv.ParseFloat(value, 64); err == nil {
			sum += sample
		}
	}
	return sum
}
