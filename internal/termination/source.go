// Package termination marks its Node when the cloud is about to terminate the Node's instance, as
// clouds do with Spot and preemptible ones. A [Source] is a cloud's metadata service, queried
// through the instance's own network. A [Handler] polls it and sets the condition Terminating, on
// which a MachineHealthCheck replaces the Machine while there is time for a drain.
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
	// Terminating reports whether the cloud has announced the instance's termination. It is not
	// called concurrently.
	Terminating(ctx context.Context) (bool, error)
}

// Cloud is a cloud whose metadata service announces terminations. It is a flag.
type Cloud string

// The supported clouds.
const (
	AWS   Cloud = "aws"
	Azure Cloud = "azure"
	GCP   Cloud = "gcp"
)

// schemes are the URI schemes of Nodes' provider IDs.
var schemes = map[string]Cloud{"aws": AWS, "azure": Azure, "gce": GCP}

// String returns the name.
func (c *Cloud) String() string { return string(*c) }

// Set implements flag.Value.
func (c *Cloud) Set(name string) error {
	switch cloud := Cloud(name); cloud {
	case AWS, Azure, GCP:
		*c = cloud
		return nil
	}
	return errors.New("must be aws, azure or gcp")
}

// CloudOf returns the cloud of a Node with the given provider ID.
func CloudOf(providerID string) (Cloud, error) {
	if scheme, _, isID := strings.Cut(providerID, "://"); isID && schemes[scheme] != "" {
		return schemes[scheme], nil
	}
	return "", fmt.Errorf("provider ID %q belongs to no supported cloud; set --cloud to aws, azure or gcp if it is one "+
		"of them", providerID)
}

// SourceOptions configures a Source.
type SourceOptions struct {
	// URL is the URL of the metadata service; default is the cloud's documented address.
	URL string
	// NodeName is the name of the Node, which on Azure is the name of the virtual machine.
	NodeName string
	// Clock determines when tokens expire; default is the system clock.
	Clock clock.PassiveClock
}

// defaultURL is the address of all three clouds' metadata services. It is link-local and needs no
// DNS.
const defaultURL = "http://169.254.169.254"

// NewSource returns the metadata service of a cloud.
func NewSource(cloud Cloud, o SourceOptions) (Source, error) {
	if o.URL == "" {
		o.URL = defaultURL
	}
	base, err := url.Parse(o.URL)
	if err != nil || !plain(base) {
		return nil, fmt.Errorf("invalid --metadata-url %q: must be a URL such as %s", o.URL, defaultURL)
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
	return nil, fmt.Errorf("invalid --cloud %q: must be aws, azure or gcp", cloud)
}

// plain reports whether a URL consists only of an HTTP scheme and a host.
func plain(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.Trim(u.Path, "/") == "" &&
		u.RawQuery == "" && u.Fragment == "" && u.User == nil
}
