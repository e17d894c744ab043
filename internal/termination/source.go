// Package termination marks the Node that it runs on when the cloud is about to take the Node's instance away, as clouds do with Spot
// and preemptible ones. A [Source] is a cloud's metadata service, asked through the instance's own network. A [Handler] polls it and
// writes the condition Terminating, on which a MachineHealthCheck replaces the Machine while there is time for a drain.
package termination

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/utils/clock"
)

// Source is the metadata service of a cloud.
type Source interface {
	// Terminating reports whether the cloud has announced that it terminates this instance. It is called by one goroutine at a time.
	Terminating(ctx context.Context) (bool, error)
}

// Cloud is a cloud whose metadata service announces terminations. It is a flag.
type Cloud string

// The clouds.
const (
	AWS   Cloud = "aws"
	Azure Cloud = "azure"
	GCP   Cloud = "gcp"
)

// schemes are those of the provider IDs of their Nodes.
var schemes = map[string]Cloud{"aws": AWS, "azure": Azure, "gce": GCP}

// String returns the name.
func (c *Cloud) String() string { return string(*c) }

// Set sets the cloud by its name.
func (c *Cloud) Set(name string) error {
	switch cloud := Cloud(name); cloud {
	case AWS, Azure, GCP:
		*c = cloud
		return nil
	}
	return errors.New("it is aws, azure or gcp")
}

// CloudOf returns the cloud of a Node with that provider ID.
func CloudOf(providerID string) (Cloud, error) {
	scheme, _, _ := strings.Cut(providerID, "://")
	if cloud, known := schemes[scheme]; known {
		return cloud, nil
	}
	return "", fmt.Errorf("the provider ID %q is of no cloud that announces terminations, which are aws, azure and gcp; set --cloud if it is one of them", providerID)
}

// SourceOptions say where a metadata service is and whom it is about.
type SourceOptions struct {
	// URL is that of the metadata service; the address that the cloud documents when empty.
	URL string
	// NodeName is the name of the Node, which on Azure is the name of the virtual machine.
	NodeName string
	// Clock is the time by which tokens expire; the real one when nil.
	Clock clock.PassiveClock
}

// defaultURL is where the metadata services of all three clouds are. The address is link-local, and needs no DNS.
const defaultURL = "http://169.254.169.254"

// NewSource returns the metadata service of a cloud.
func NewSource(cloud Cloud, o SourceOptions) (Source, error) {
	if o.URL == "" {
		o.URL = defaultURL
	}
	base, err := url.Parse(o.URL)
	if err != nil || !plain(base) {
		return nil, fmt.Errorf("the URL %q of the metadata service is not like %s: correct --metadata-url", o.URL, defaultURL)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	service := newMetadata(base)
	switch cloud {
	case AWS:
		return &aws{service: service, clock: o.Clock}, nil
	case Azure:
		return &azure{service: service, nodeName: o.NodeName, version: azurePreview}, nil
	case GCP:
		return &gcp{service: service}, nil
	}
	return nil, fmt.Errorf("the cloud %q is none of aws, azure and gcp: correct --cloud", cloud)
}

// plain reports whether a URL has a scheme of HTTP and a host, and nothing else.
func plain(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}
