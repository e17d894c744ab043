package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

const (
	probeTimeout = 2 * time.Second
	// tailLines bounds the part of a log in an error, maxResponse that of a response.
	tailLines   = 15
	maxResponse = 8 << 10
)

// probeURL returns the URL of a component's readiness check.
func probeURL(component Component, ports map[portName]int) string {
	address := loopback(ports[portsOf[component][0]])
	switch component {
	case Etcd:
		return "https://" + address + "/health"
	case APIServer:
		return "https://" + address + "/readyz"
	case KWOK:
		return "http://" + address + "/healthz"
	default:
		return "https://" + address + "/healthz"
	}
}

// probe returns nil if a component is ready.
func probe(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s: %s", url, response.Status, bytes.TrimSpace(body))
	}
	return nil
}

// probeClient returns a client with the administrator's certificate, which every component trusts.
func (c *Cluster) probeClient() (*http.Client, error) {
	config, err := c.AdminConfig()
	if err != nil {
		return nil, err
	}
	secured, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the administrator's certificate: %w", err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: secured, DisableKeepAlives: true}}, nil
}

// waitReady polls until the component is ready, its process ends, or the context ends.
func waitReady(ctx context.Context, client *http.Client, url string, running started) error {
	tick := time.NewTicker(2 * pollInterval)
	defer tick.Stop()
	var said error
	for {
		err := probe(ctx, client, url)
		if err == nil {
			return nil
		}
		if said == nil || ctx.Err() == nil { // ignore a request that the deadline cut off
			said = err
		}
		select {
		case status := <-running.exited:
			return exitError(status)
		case <-ctx.Done():
			return fmt.Errorf("waiting until it is ready: %w; it last said: %w", ctx.Err(), said)
		case <-tick.C:
			if running.exited == nil && !running.alive() {
				return exitError(nil)
			}
		}
	}
}

func exitError(status error) error {
	if status == nil {
		return errors.New("it ended by itself")
	}
	return fmt.Errorf("it ended by itself: %w", status)
}

// failure returns an error with its cause, its location, the fix and the end of the component's log.
func failure(l layout, component Component, cause error) error {
	tail := logTail(l.log(component))
	fix := "fix the problem in its log and run 'devcluster up' again"
	if strings.Contains(tail, "address already in use") {
		fix = "another program took its port; run 'devcluster up' again to move it to a free one"
	}
	return fmt.Errorf("starting %s: %w; %s\nlast lines of %s:\n%s", component, cause, fix, l.log(component), tail)
}

// logTail returns the last lines of a file, indented, or a line that it cannot be read.
func logTail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "  " + strings.Join(lines, "\n  ")
}
